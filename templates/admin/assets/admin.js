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

  // Ticks and open parts stay when a live part is loaded again.
  var kept = [];
  document.body.addEventListener("htmx:beforeSwap", function () {
    kept = Array.from(document.querySelectorAll("#live input:checked[id], #live details[open][id]"), function (e) { return e.id; });
  });
  document.body.addEventListener("htmx:afterSettle", function () {
    kept.forEach(function (id) {
      var e = document.getElementById(id);
      if (e) e[e.tagName === "DETAILS" ? "open" : "checked"] = true;
    });
    showPick();
  });

  // One box for all on the page.
  function showPick() { document.querySelectorAll("label.pick").forEach(function (l) { l.hidden = false; }); }
  showPick();
  document.body.addEventListener("change", function (e) {
    if (e.target.id !== "pick-all") return;
    document.querySelectorAll("input[name=ids][form=chosen]").forEach(function (b) { b.checked = e.target.checked; });
  });

  // Copying, where the browser lets us.
  document.querySelectorAll("button[data-copy]").forEach(function (b) {
    if (!navigator.clipboard) return;
    b.hidden = false;
    b.addEventListener("click", function () {
      navigator.clipboard.writeText(document.getElementById(b.dataset.copy).textContent).then(function () { b.textContent = b.dataset.done; });
    });
  });

  // A live page says at once that the service does not answer, and loads its
  // live part again when the service is back. The service sends a beat every
  // 15 s, so 40 s of silence mean that it hangs.
  var offline = document.getElementById("offline"), silence;
  function heard() {
    clearTimeout(silence);
    silence = setTimeout(lost, 40000);
  }
  function lost() { offline.hidden = false; }
  function back() {
    heard();
    if (offline.hidden) return;
    offline.hidden = true;
    if (document.getElementById("live")) {
      htmx.ajax("GET", location.href, { target: "#live", select: "#live", swap: "outerHTML" });
    }
  }
  if (offline) {
    heard();
    document.body.addEventListener("htmx:sseError", lost);
    document.body.addEventListener("htmx:sseOpen", function (e) {
      ["beat", "stats"].forEach(function (name) { e.detail.source.addEventListener(name, back); });
      back();
    });
  }

  // "/" goes to the search field.
  document.addEventListener("keydown", function (e) {
    if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) return;
    var field = document.querySelector("input[type=search]");
    if (field) { e.preventDefault(); field.focus(); }
  });
});
