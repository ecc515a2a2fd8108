// Charts that can be pointed at. The server has drawn them already: figure[data-values]
// has the same values, and a live part that is loaded again brings newer ones.
"use strict";
document.addEventListener("DOMContentLoaded", function () {
  if (!window.uPlot) return;
  var drawn = {}; // by the name of a chart
  function colour(key) {
    var probe = document.createElement("i");
    probe.className = "key k-" + key;
    document.body.append(probe);
    var found = getComputedStyle(probe).backgroundColor;
    probe.remove();
    return found;
  }
  function ink(name) {
    var probe = document.createElement("i");
    probe.className = name;
    document.body.append(probe);
    var found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }
  function two(n) { return ("0" + n).slice(-2); }
  function moment(seconds, step, axis) {
    var at = new Date(seconds * 1000), clock = two(at.getUTCHours()) + ":" + two(at.getUTCMinutes());
    var day = two(at.getUTCMonth() + 1) + "-" + two(at.getUTCDate());
    return step <= 1800 ? clock : axis ? day : day + " " + clock;
  }
  // As the server writes numbers and durations.
  function count(n) { return String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, "\u202f"); }
  function length(ms) {
    if (ms < 1000) return Math.floor(ms) + " ms";
    if (ms < 10000) return (ms / 1000).toFixed(1) + " s";
    if (ms < 120000) return Math.floor(ms / 1000) + " s";
    if (ms < 7200000) return Math.floor(ms / 60000) + " min";
    if (ms < 172800000) return Math.floor(ms / 3600000) + " h";
    return Math.floor(ms / 86400000) + " d";
  }
  function text(c, v) { return v == null ? "–" : c.unit === "ms" ? length(v) : count(v); }
  // Rows for uPlot: of a stack, the sums from below, the highest first.
  function rows(c) {
    var n = c.lines.length ? c.lines[0].values.length : 0, times = [], sums = [], below = [];
    for (var i = 0; i < n; i++) {
      times.push(c.since + i * c.step);
      below.push(0);
    }
    if (!c.stacked) return [times].concat(c.lines.map(function (l) { return l.values; }));
    c.lines.forEach(function (l) {
      below = below.map(function (v, i) { return v + (l.values[i] || 0); });
      sums.unshift(below);
    });
    return [times.map(function (t) { return t + c.step / 2; })].concat(sums);
  }
  // The values between two gaps, which no line shows.
  function alone(u, series) {
    var values = u.data[series], found = [];
    values.forEach(function (v, i) { if (v != null && values[i - 1] == null && values[i + 1] == null) found.push(i); });
    return found;
  }
  function tip(d) {
    var k = d.plot.cursor.idx, c = d.chart;
    if (k == null || d.plot.cursor.left < 0) { d.tip.hidden = true; return; }
    d.tip.hidden = false;
    d.tip.replaceChildren();
    var head = document.createElement("b"), from = c.since + k * c.step;
    head.textContent = moment(from, c.step) + "–" + moment(from + c.step, c.step) + " UTC";
    d.tip.append(head);
    c.lines.forEach(function (l) {
      var row = document.createElement("div"), key = document.createElement("span"), name = document.createElement("span"), value = document.createElement("span");
      key.className = "key k-" + l.key;
      name.textContent = l.name;
      value.textContent = text(c, l.values[k]);
      row.append(key, name, value);
      d.tip.append(row);
    });
    var x = d.plot.cursor.left + d.plot.over.offsetLeft + 14, width = d.plot.root.parentNode.clientWidth;
    if (x + d.tip.offsetWidth > width) x -= d.tip.offsetWidth + 28;
    d.tip.style.left = Math.max(x, 0) + "px";
    d.tip.style.top = "8px";
  }
  function make(figure, c) {
    var d = { chart: c, tip: document.createElement("div") }, soft = ink("dim"), grid = { stroke: ink("chart-grid"), width: 1 };
    var font = "11px " + getComputedStyle(document.body).fontFamily, order = c.stacked ? c.lines.slice().reverse() : c.lines;
    d.tip.className = "tip";
    d.tip.hidden = true;
    d.shape = shape(c);
    var series = order.map(function (l) {
      var of = colour(l.key);
      return c.stacked ? { stroke: of, fill: of, width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [0.72, 28] }) } : { stroke: of, width: 1.5, points: { show: true, size: 4, fill: of, filter: alone } };
    });
    d.plot = new uPlot({
      width: figure.clientWidth, height: figure.clientHeight, series: [{}].concat(series), legend: { show: false }, padding: [8, 16, 0, 0],
      tzDate: function (s) { return uPlot.tzDate(new Date(s * 1000), "UTC"); },
      cursor: { y: false, drag: { x: false }, points: { show: !c.stacked } },
      scales: { x: { range: function (u, a, b) { return c.stacked ? [a - c.step / 2, b + c.step / 2] : [a, b]; } }, y: { range: function (u, a, b) { return [0, Math.max(1, (b || 0) * 1.08)]; } } },
      axes: [
        { stroke: soft, font: font, grid: { show: false }, ticks: { show: false }, size: 20, gap: 4, space: 72, values: function (u, list) { return list.map(function (s) { return moment(s, c.step, true); }); } },
        { stroke: soft, font: font, grid: grid, ticks: { show: false }, size: 52, gap: 6, space: 44, incrs: c.stacked ? [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 1e7] : undefined, values: function (u, list) { return list.map(function (v) { return text(c, v); }); } }
      ],
      hooks: { setCursor: [function () { if (d.plot) tip(d); }] }
    }, rows(c), document.createElement("div"));
    return d;
  }
  function shape(c) { return JSON.stringify([c.step, c.stacked, c.lines.map(function (l) { return [l.name, l.key]; }), document.documentElement.dataset.theme]); }
  function show(figure) {
    var c = JSON.parse(figure.dataset.values), name = figure.dataset.chart, d = drawn[name];
    if (!c.lines || !c.lines.length) return;
    if (!d || d.shape !== shape(c)) {
      if (d) d.plot.destroy();
      d = drawn[name] = make(figure, c);
    } else {
      d.chart = c;
      d.plot.setData(rows(c));
    }
    var still = figure.querySelector("svg.still");
    if (still) figure.setAttribute("aria-label", still.getAttribute("aria-label"));
    figure.setAttribute("role", "img");
    figure.replaceChildren(d.plot.root, d.tip);
    if (!d.tip.hidden) tip(d);
  }
  // A chart is made when it comes near the window, each in its own task: until then the
  // server's picture stands there.
  var near = new IntersectionObserver(function (seen) {
    seen.forEach(function (e) {
      if (!e.isIntersecting) return;
      near.unobserve(e.target);
      setTimeout(function () { if (e.target.isConnected) show(e.target); });
    });
  }, { rootMargin: "100px" });
  function showAll() {
    near.disconnect();
    document.querySelectorAll("figure[data-values]").forEach(function (f) {
      if (drawn[f.dataset.chart]) show(f); else near.observe(f);
    });
  }
  function again() {
    Object.keys(drawn).forEach(function (name) { drawn[name].plot.destroy(); });
    drawn = {};
    showAll();
  }
  showAll();
  document.body.addEventListener("htmx:afterSwap", showAll);
  var width = innerWidth, wait;
  addEventListener("resize", function () {
    if (innerWidth === width) return;
    width = innerWidth;
    clearTimeout(wait);
    wait = setTimeout(again, 100);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
});
