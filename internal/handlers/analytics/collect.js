// Counts this page view. No cookies, nothing is stored in the browser.
(function () {
  'use strict';
  var me = document.currentScript, to = me.getAttribute('data-collect') || me.src.replace(/\/[^/]*$/, '/collect');
  var last = null;
  function send() {
    var here = location.href.split('#')[0];
    if (here === last || location.protocol === 'file:' || navigator.webdriver) return;
    var body = JSON.stringify({ u: here, r: last === null ? document.referrer : last });
    last = here;
    if (!(navigator.sendBeacon && navigator.sendBeacon(to, body))) {
      fetch(to, { method: 'POST', body: body, keepalive: true, credentials: 'omit' });
    }
  }
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
})();
