// Suggestions as one types a filter; without a script the browser suggests them.
"use strict";
document.addEventListener("DOMContentLoaded", function () {
  var input = document.getElementById("q"), source = document.getElementById("q-options");
  if (!input || !source) return;
  var options = Array.from(source.children).map(function (o) { return { value: o.value, label: o.label === o.value ? "" : o.label }; });
  var list = document.createElement("ul"), at = -1;
  list.id = "q-list";
  list.className = "menu suggest";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", input.getAttribute("aria-label"));
  list.hidden = true;
  input.closest("form").append(list);
  input.removeAttribute("list");
  source.remove();
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-controls", "q-list");
  input.setAttribute("aria-expanded", "false");

  // The word at the end of the line is what is completed.
  function word() { return /\S*$/.exec(input.value)[0]; }
  function fitting() {
    var w = word().toLowerCase(), named = w.indexOf(":") >= 0;
    return options.filter(function (o) {
      var v = o.value.toLowerCase(), begins = v.slice(-1) === ":";
      if (w === v) return false;
      if (named) return !begins && v.indexOf(w.slice(0, w.indexOf(":") + 1)) === 0 && v.indexOf(w.slice(w.indexOf(":") + 1), w.indexOf(":")) >= 0;
      return begins ? v.indexOf(w) === 0 : w.length > 1 && v.indexOf(w, v.indexOf(":")) >= 0;
    }).slice(0, 10);
  }
  function show() {
    at = -1;
    var found = fitting();
    list.replaceChildren.apply(list, found.map(function (o, i) {
      var row = document.createElement("li"), code = document.createElement("code");
      row.id = "q-option-" + i;
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", "false");
      row.dataset.value = o.value;
      code.textContent = o.value;
      row.append(code);
      if (o.label) {
        var dim = document.createElement("span");
        dim.className = "dim";
        dim.textContent = o.label;
        row.append(dim);
      }
      return row;
    }));
    open(found.length > 0);
  }
  function open(yes) {
    list.hidden = !yes;
    input.setAttribute("aria-expanded", String(yes));
    if (!yes) input.removeAttribute("aria-activedescendant");
  }
  function move(step) {
    var rows = Array.from(list.children);
    if (list.hidden || !rows.length) { show(); return; }
    at = (at + step + rows.length + 1) % (rows.length + 1);
    if (at === rows.length) at = step > 0 ? 0 : rows.length - 1;
    rows.forEach(function (r, i) { r.setAttribute("aria-selected", String(i === at)); });
    input.setAttribute("aria-activedescendant", rows[at].id);
    rows[at].scrollIntoView({ block: "nearest" });
  }
  // A value is a whole condition, so the list is filtered; a qualifier waits for one.
  function take(value) {
    input.value = input.value.slice(0, input.value.length - word().length) + value;
    input.focus();
    if (value.slice(-1) === ":") show(); else input.form.requestSubmit();
  }
  input.addEventListener("input", show);
  input.addEventListener("focus", show);
  input.addEventListener("click", show);
  input.addEventListener("blur", function () { open(false); });
  list.addEventListener("mousedown", function (e) {
    e.preventDefault(); // the focus stays in the field
    var row = e.target.closest("li");
    if (row) take(row.dataset.value);
  });
  input.addEventListener("keydown", function (e) {
    var rows = list.children;
    if (e.key === "ArrowDown" || e.key === "ArrowUp") { e.preventDefault(); move(e.key === "ArrowDown" ? 1 : -1); }
    else if (e.key === "Escape" && !list.hidden) { e.preventDefault(); open(false); }
    else if (e.key === "Enter" && !list.hidden && at >= 0) { e.preventDefault(); take(rows[at].dataset.value); }
    else if (e.key === "Backspace" && input.value === "") {
      var tokens = input.parentElement.querySelectorAll(".tok a");
      if (tokens.length) location.href = tokens[tokens.length - 1].href;
    }
  });
});
