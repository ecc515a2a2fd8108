// What a page can do better with a script; all of it works without.
"use strict";
document.addEventListener("DOMContentLoaded", function () {
  function one(selector, root) { return (root || document).querySelector(selector); }
  function all(selector, root) { return Array.from((root || document).querySelectorAll(selector)); }
  function typing(e) { return /^(INPUT|TEXTAREA|SELECT)$/.test(e.tagName); }

  // Times in the reader's own zone, for who points at them.
  function zone(root) {
    all("time[datetime]", root).forEach(function (t) {
      var at = new Date(t.dateTime);
      if (!isNaN(at)) t.title = at.toLocaleString(document.documentElement.lang) + "\n" + t.title.split("\n").pop();
    });
  }
  zone(document);
  document.body.addEventListener("htmx:afterSwap", function () { zone(document); });

  // Ticks, open parts and the focus stay when a live part is loaded again.
  var kept = [], focused = "";
  document.body.addEventListener("htmx:beforeSwap", function () {
    kept = all("#live input:checked[id], #live details[open][id]").map(function (e) { return e.id; });
    focused = document.activeElement && document.activeElement.closest("#live") ? document.activeElement.id : "";
  });
  document.body.addEventListener("htmx:afterSettle", function () {
    kept.forEach(function (id) {
      var e = document.getElementById(id);
      if (e) e[e.tagName === "DETAILS" ? "open" : "checked"] = true;
    });
    if (focused && document.getElementById(focused)) document.getElementById(focused).focus({ preventScroll: true });
    showPick();
  });

  // One box for all on the page.
  function showPick() { all("label.pick").forEach(function (l) { l.hidden = false; }); }
  showPick();
  document.body.addEventListener("change", function (e) {
    if (e.target.id !== "pick-all") return;
    all("input[name=ids][form=chosen]").forEach(function (b) { b.checked = e.target.checked; });
  });

  // Copying, where the browser lets us.
  all("button[data-copy]").forEach(function (b) {
    if (!navigator.clipboard) return;
    b.hidden = false;
    b.addEventListener("click", function () {
      navigator.clipboard.writeText(document.getElementById(b.dataset.copy).textContent).then(function () { b.textContent = b.dataset.done; });
    });
  });

  // A live page says at once that the service does not answer, and loads its
  // live part again when the service is back. The service sends a beat every
  // 15 s, so 40 s of silence mean that it hangs.
  var offline = one("#offline"), silence;
  function heard() {
    clearTimeout(silence);
    silence = setTimeout(lost, 40000);
  }
  function lost() { offline.hidden = false; }
  function back() {
    heard();
    if (offline.hidden) return;
    offline.hidden = true;
    if (one("#live")) htmx.ajax("GET", location.href, { target: "#live", select: "#live", swap: "outerHTML" });
  }
  // The figures of the menu come with the event "stats".
  function figures(e) {
    var stats = JSON.parse(e.data);
    all("[data-live]").forEach(function (n) {
      var value = stats[n.dataset.live];
      if (typeof value !== "number") return;
      n.hidden = value === 0;
      one("b", n).textContent = String(value).replace(/\B(?=(\d{3})+$)/g, "\u202f");
    });
  }
  if (offline) {
    heard();
    document.body.addEventListener("htmx:sseError", lost);
    document.body.addEventListener("htmx:sseOpen", function (e) {
      ["beat", "stats"].forEach(function (name) { e.detail.source.addEventListener(name, back); });
      e.detail.source.addEventListener("stats", figures);
      back();
    });
  }

  // The notice of an action becomes a toast, which stays while it is pointed at or
  // has the focus. Bad news stay where they are.
  var toasts = one(".toasts"), notice = one(".notice:not(.fault)");
  if (toasts && notice) {
    notice.removeAttribute("role");
    notice.className = "toast";
    toasts.append(notice);
    var shown = one("form", notice) ? 20000 : 6000; // what can be undone stays longer
    (function leave() {
      setTimeout(function () { notice.matches(":hover, :focus-within") ? leave() : notice.remove(); }, shown);
    })();
  }

  // The drawer of a phone: the focus goes in and comes back.
  var side = one("#nav"), page = one(".page");
  function drawer() {
    if (!side) return;
    var open = location.hash === "#nav" && matchMedia("(max-width: 760px)").matches;
    page.inert = open;
    if (open) one(".close-nav").focus();
    else if (drawer.was) one("a[href='#nav']").focus();
    drawer.was = open;
  }
  addEventListener("hashchange", drawer);
  drawer();

  // A question in a drawer beside the list that it is about. What the server answers to
  // the form is the same page as without a script.
  var sheet = document.createElement("dialog"), answering = false;
  sheet.className = "sheet";
  sheet.setAttribute("aria-labelledby", "question");
  document.body.append(sheet);
  function showQuestion(text) {
    var page = new DOMParser().parseFromString(text, "text/html");
    var shown = page.querySelector("form.confirm") || page.querySelector("main");
    sheet.replaceChildren(document.adoptNode(shown));
    var title = one("h1", sheet);
    if (title) title.id = "question";
    if (!sheet.open) sheet.showModal();
    var field = one("#typed", sheet);
    if (field) field.focus();
  }
  document.addEventListener("submit", function (e) {
    var form = e.target, asked = sheet.contains(form);
    if (!asked && !form.closest("[data-drawer]")) return;
    e.preventDefault();
    if (answering) return;
    answering = true;
    form.setAttribute("aria-busy", "true");
    fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) })
      .then(function (answer) {
        if (answer.redirected) { location.href = answer.url; return; }
        return answer.text().then(showQuestion);
      }).catch(function () { asked ? lost() : form.submit(); }) // a question may be asked again, a yes may not
      .finally(function () { answering = false; form.removeAttribute("aria-busy"); });
  });
  sheet.addEventListener("click", function (e) {
    if (e.target !== sheet && !e.target.closest("form.confirm a.btn")) return;
    e.preventDefault();
    sheet.close();
  });

  // The command palette: the search page in a dialog.
  var palette = one("#palette"), asked = 0, wait;
  function openPalette() {
    if (palette.open) return;
    one("input", palette).value = "";
    palette.showModal();
    ask();
  }
  function ask() {
    var mine = ++asked, q = one("input", palette).value;
    var at = one("form", palette).action + "?q=" + encodeURIComponent(q);
    fetch(at, { headers: { "HX-Request": "true", "HX-Current-URL": location.href } })
      .then(function (answer) { return answer.ok ? answer.text() : Promise.reject(answer.status); })
      .then(function (text) {
        var found = new DOMParser().parseFromString(text, "text/html").querySelector("#results");
        if (mine !== asked || !found) return;
        found.removeAttribute("id");
        one(".opts", palette).replaceChildren(document.adoptNode(found));
        mark();
      }).catch(function () { location.href = at; });
  }
  function options() { return all(".opt", palette); }
  function mark() { // what Enter in the field runs
    options().forEach(function (o, i) { o.classList.toggle("at", i === 0 && document.activeElement === one("input", palette)); });
  }
  function move(step) {
    var list = options(), at = list.indexOf(document.activeElement);
    if (at < 0) at = step > 0 ? (list[0] && list[0].classList.contains("at") ? 0 : -1) : 0;
    var next = at + step;
    (next < 0 || next >= list.length ? one("input", palette) : list[next]).focus();
    mark();
  }
  if (palette) {
    palette.addEventListener("click", function (e) { if (e.target === palette) palette.close(); });
    palette.addEventListener("focusin", mark);
    one("input", palette).addEventListener("input", function () {
      clearTimeout(wait);
      wait = setTimeout(ask, 120);
    });
    one("form", palette).addEventListener("submit", function (e) {
      var first = one(".opt", palette);
      if (first) { e.preventDefault(); first.click(); }
    });
    palette.addEventListener("keydown", function (e) {
      if (e.key === "ArrowDown" || e.key === "ArrowUp") { e.preventDefault(); move(e.key === "ArrowDown" ? 1 : -1); }
      else if (e.key.length === 1 && !e.ctrlKey && !e.metaKey && e.key !== " " && !typing(e.target)) one("input", palette).focus();
    });
    var field = one("form.seek input");
    field.addEventListener("mousedown", function (e) { e.preventDefault(); openPalette(); });
    field.addEventListener("input", function () { openPalette(); one("input", palette).value = field.value; field.value = ""; ask(); });
  }

  // Keys: Ctrl K and / open the palette, j and k walk a list, x ticks its row.
  function walk(step) {
    var names = all("main .tbl tbody a.name, main .list a.name"), at = names.indexOf(document.activeElement);
    if (!names.length) return;
    names[Math.max(0, Math.min(names.length - 1, at < 0 ? 0 : at + step))].focus();
  }
  document.addEventListener("keydown", function (e) {
    if (palette && (e.ctrlKey || e.metaKey) && !e.altKey && e.key.toLowerCase() === "k") { e.preventDefault(); openPalette(); return; }
    if (e.key === "Escape" && location.hash === "#nav") { location.hash = "#main"; return; }
    if (e.ctrlKey || e.metaKey || e.altKey || typing(e.target) || palette && palette.open) return;
    if (e.key === "/" && palette) { e.preventDefault(); openPalette(); }
    else if (e.key === "j") walk(1);
    else if (e.key === "k") walk(-1);
    else if (e.key === "x") {
      var row = document.activeElement.closest("tr"), box = row && one("input[type=checkbox]", row);
      if (box) box.click();
    }
  });
});
