// What a page can do better with a script; all of it works without.
"use strict";
document.addEventListener("DOMContentLoaded", function () {
  // Times in the reader's own zone, for who points at them.
  function zone(root) {
    root.querySelectorAll("time[datetime]").forEach(function (t) {
      var at = new Date(t.dateTime);
      if (!isNaN(at)) t.title = at.toLocaleString(document.documentElement.lang) + "\n" + t.title.split("\n").pop();
    });
  }
  zone(document);
  document.body.addEventListener("htmx:afterSwap", function () { zone(document); });

  // Copying, where the browser lets us.
  document.querySelectorAll("button[data-copy]").forEach(function (b) {
    if (!navigator.clipboard) return;
    b.hidden = false;
    b.addEventListener("click", function () {
      navigator.clipboard.writeText(document.getElementById(b.dataset.copy).textContent).then(function () { b.textContent = b.dataset.done; });
    });
  });

  // "/" goes to the search field.
  document.addEventListener("keydown", function (e) {
    if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) return;
    var field = document.querySelector("input[type=search]");
    if (field) { e.preventDefault(); field.focus(); }
  });
});
