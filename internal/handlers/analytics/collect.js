// Counts this page view. No cookies, nothing is stored in the browser.
// cmsjobs('Signup') counts an event.
(function () {
  'use strict';
  var me = document.currentScript, to = me.getAttribute('data-collect') || me.src.replace(/\/[^/]*$/, '/collect');
  var last = null, early = window.cmsjobs && window.cmsjobs.q || [];
  function here() { return location.href.split('#')[0]; }
  function post(hit) {
    if (location.protocol === 'file:' || navigator.webdriver) return;
    var body = JSON.stringify(hit);
    if (!(navigator.sendBeacon && navigator.sendBeacon(to, body))) {
      fetch(to, { method: 'POST', body: body, keepalive: true, credentials: 'omit' });
    }
  }
  function send() {
    if (here() === last) return;
    var hit = { u: here(), r: last === null ? document.referrer : last };
    last = here();
    post(hit);
  }
  function event(name) { post({ u: here(), r: document.referrer, n: String(name) }); }
  function visible() {
    if (document.visibilityState === 'prerender' || document.prerendering) {
      document.addEventListener('prerenderingchange', send, { once: true });
    } else {
      send();
    }
  }
  var push = history.pushState;
  if (push) {
    history.pushState = function () { push.apply(this, arguments); setTimeout(send, 0); };
    addEventListener('popstate', function () { setTimeout(send, 0); });
  }
  visible();
  window.cmsjobs = event;
  early.forEach(function (call) { event(call[0]); });
})();
