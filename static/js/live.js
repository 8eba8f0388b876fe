/* The live connection: one socket a page carries signals, what they name is fetched over HTTP (regions.js).
   Lost: after 3 s the page says so, its clocks stop, its numbers turn grey. The socket stays open in a hidden tab. */
(function () {
  "use strict";
  const T = (window.Turno = window.Turno || {});
  const root = document.documentElement;
  const GRACE = 3000, SILENCE = 12000, POLL = 5000, LONGEST = 30000, STEADY = 10000, ANSWER = 10000, ENDED = 4401;
  const meta = (name) => (document.querySelector('meta[name="' + name + '"]') || {}).content;
  const hub = meta("turno-hub");
  const say = (key, values) => T.say(T.words[key], values);
  if (!hub) return;

  let socket = null, attempt = 0, refusals = 0, openedAt = 0, heard = 0;
  let connected = false, polling = false, ended = false, paused = "", leaving = false;
  let lostAt = performance.now(), retryAt = 0, retryTimer = 0;
  /* Instants are the server's: this machine's clock may be wrong, and be set while the page is open. */
  let dataAt = Number(meta("turno-at")) || Date.now(), readAt = performance.now();

  function serverNow() { return dataAt + performance.now() - readAt; }

  function clockTime(instant) {
    const how = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
    try {
      return new Intl.DateTimeFormat(root.lang, { timeZone: meta("turno-zone"), ...how }).format(instant);
    } catch (error) { // a zone that this browser does not know
      return new Intl.DateTimeFormat(root.lang, how).format(instant);
    }
  }

  /* What the page shows ------------------------------------------------------------------------------------------ */

  function lost() { return ended || (!connected && !polling && performance.now() - lostAt >= GRACE); }

  function show() {
    const off = lost(), still = off || Boolean(paused) || document.hidden;
    const now = off ? "off" : paused ? "paused" : "on";
    if (root.dataset.live !== now) root.dataset.live = now;
    root.dataset.hub = connected ? "on" : polling ? "poll" : "off";
    const text = off ? say("offline") : paused ? say("paused", { time: paused }) : say("live");
    document.querySelectorAll("[data-live-text]").forEach(function (node) {
      if (node.textContent !== text) node.textContent = text;
    });
    document.querySelectorAll("[data-live-toggle]").forEach(function (button) {
      const label = say(paused ? "resume" : "pause");
      button.setAttribute("aria-pressed", String(Boolean(paused)));
      button.setAttribute("aria-label", label);
      button.title = label;
    });
    document.querySelectorAll("[data-live-switch]").forEach(function (box) { box.checked = !paused; });
    banner(off);
    T.clocks.run(!still);
    T.regions.run(!still && (connected || polling));
  }

  /** The banner is an alert: its words are said once, the countdown is for the eye. */
  function banner(off) {
    const box = document.getElementById("queda");
    if (!box) return;
    const space = box.querySelector("[data-lost-text]"), retry = box.querySelector("[data-live-retry]");
    const what = ended ? say("session_over") : polling ? say("polling")
      : say("lost") + " " + say("data_from", { time: clockTime(dataAt) });
    const seconds = Math.ceil((retryAt - performance.now()) / 1000);
    const when = ended || polling ? "" : seconds > 0 ? say("retry_in", { seconds: seconds }) : say("retrying");
    if (off || polling) {
      if (space.dataset.said !== what) {
        space.dataset.said = what;
        space.replaceChildren(document.createTextNode(what + " "), document.createElement("span"));
        space.lastChild.setAttribute("aria-hidden", "true");
      }
      if (space.lastChild.textContent !== when) space.lastChild.textContent = when;
      retry.hidden = ended;
      const enter = box.querySelector("[data-sign-in]");
      if (enter) enter.hidden = !ended;
    }
    box.hidden = !(off || polling);
  }

  /* The socket ---------------------------------------------------------------------------------------------------- */

  function connect() {
    clearTimeout(retryTimer);
    retryTimer = retryAt = 0;
    if (socket || leaving) return;
    const mine = new WebSocket(location.origin.replace(/^http/, "ws") + hub);
    socket = mine;
    openedAt = 0;
    heard = performance.now();
    mine.onopen = function () { openedAt = heard = performance.now(); };
    mine.onmessage = function (event) { if (socket === mine) hear(mine, event.data); };
    mine.onclose = function (event) { if (socket === mine) gone(event.code); };
    show();
  }

  function hear(from, text) {
    heard = performance.now();
    let message;
    try { message = JSON.parse(text); } catch (error) { return; }
    if (message.n) from.send(JSON.stringify({ seen: message.n }));
    if ("live" in message) turn(message.live);
    if (message.topics && connected) T.regions.signal(message);
  }

  /** The hub hears the database, or does not: then signals are missing, as if this socket were lost. */
  function turn(live) {
    if (connected === live) return;
    connected = live;
    lostAt = performance.now();
    if (live) {
      ended = polling = false;
      refusals = 0;
      T.regions.refreshAll();
    }
    show();
  }

  function gone(code) {
    const opened = openedAt, steady = opened && performance.now() - opened > STEADY;
    drop();
    if (connected) lostAt = performance.now();
    connected = false;
    if (leaving) return;
    attempt = steady ? 0 : attempt;
    wait();
    if (!opened || code === ENDED) ask(code === ENDED);
    show();
  }

  function drop() {
    const old = socket;
    socket = null;
    if (old && old.readyState < WebSocket.CLOSING) old.close();
  }

  /** 1, 2, 4 … 30 s, each a little earlier or later, so that not all pages come at once. */
  function wait() {
    const delay = Math.min(LONGEST, 1000 * 2 ** attempt) * (0.75 + Math.random() / 2);
    attempt += 1;
    retryAt = performance.now() + delay;
    clearTimeout(retryTimer);
    retryTimer = setTimeout(connect, delay);
  }

  /** Refused, and a browser does not tell why: the same address says so over HTTP. `sent`: by a session's end. */
  function ask(sent) {
    const how = { redirect: "manual", cache: "no-store", headers: { Accept: "application/json" } };
    how.signal = AbortSignal.timeout(ANSWER); // one that is never answered would hold a connection of the few there are
    fetch(hub, how).then(function (answer) {
      if (connected || leaving) return;
      if (answer.type === "opaqueredirect" || answer.status === 401) over();
      else if (answer.ok && sent) again(); // signed in again, in another tab
      else if (answer.ok) polls();
      show();
    }, function () { polling = false; refusals = 0; show(); });
  }

  /** HTTP works and the socket does not, twice: something on the way takes no websockets. */
  function polls() {
    refusals += 1;
    if (refusals < 2 || polling) return;
    polling = true;
    T.regions.refreshAll();
  }

  function over() {
    ended = true;
    polling = connected = false;
    clearTimeout(retryTimer);
    drop();
    show();
  }

  /* What people and the browser do -------------------------------------------------------------------------------- */

  function toggle() {
    paused = paused ? "" : clockTime(serverNow());
    if (!paused) T.regions.refreshAll();
    show();
  }

  function again() {
    attempt = 0;
    connect();
  }

  document.addEventListener("click", function (event) {
    if (event.target.closest("[data-live-toggle]")) toggle();
    if (event.target.closest("[data-live-retry]")) again();
  });
  document.addEventListener("change", function (event) { if (event.target.closest("[data-live-switch]")) toggle(); });
  document.addEventListener("visibilitychange", function () {
    if (!document.hidden) {
      T.regions.refreshAll();
      if (!socket) again(); // signed in again in another tab, or the machine slept
    }
    show();
  });
  window.addEventListener("online", again);
  window.addEventListener("pagehide", function () {
    leaving = true;
    drop();
    connected = false; // a page that comes back from the browser's memory has missed what was said
    lostAt = performance.now();
  });
  window.addEventListener("pageshow", function (event) {
    if (!event.persisted) return;
    leaving = false;
    lostAt = performance.now();
    again();
  });

  setInterval(function () {
    if (socket && performance.now() - heard > SILENCE) gone(0);
    if (!connected) show();
    T.regions.tick(polling ? POLL : 0);
  }, 1000);

  T.live = {
    toggle: toggle,
    ended: over,
    data: function (at) {
      if (!at) return;
      dataAt = Number(at);
      readAt = performance.now();
    },
    now: serverNow,
    /** A fetch was not answered: without a socket that is all that was known of the server. */
    unanswered: function () {
      if (!polling) return;
      polling = false;
      lostAt = performance.now() - GRACE;
      show();
    },
    get connected() { return connected; }
  };
  connect();
})();
