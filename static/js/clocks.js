/* Clocks that run between two answers of the server: data-since counts up, data-until down, data-ago says an age.
   One interval moves them all; it stands still when the page is paused, hidden or cut off. */
(function () {
  "use strict";
  const T = (window.Turno = window.Turno || {});
  const known = new WeakMap(); // element -> {raw, base, shown}: `base` is the instant at which the clock was zero
  const JUMP = 1500; // ms: two answers may differ by this much, from rounding and the way; the clock does not go back
  let interval = 0;

  function two(number) { return (number < 10 ? "0" : "") + number; }

  /** "1:24", "2:05:10": as the server writes it. */
  function clock(seconds) {
    const whole = Math.max(0, Math.floor(seconds));
    const hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
    return hours ? hours + ":" + two(minutes) + ":" + two(whole % 60) : minutes + ":" + two(whole % 60);
  }

  /** "2 min ago"; null from a day on, where the server's words stand. */
  function ago(seconds) {
    const say = (key, n) => (T.words && T.words[key] ? T.words[key].replace("{n}", n) : null);
    if (seconds < 1) return say("ago_now", 0);
    if (seconds < 60) return say("ago_s", Math.floor(seconds));
    if (seconds < 3600) return say("ago_min", Math.floor(seconds / 60));
    if (seconds < 86400) return say("ago_h", Math.floor(seconds / 3600));
    return null;
  }

  /** The seconds a clock shows now. A new answer moves its base, and never the shown second back by one. */
  function seconds(time, raw, sign, now) {
    let clockwork = known.get(time);
    if (!clockwork || clockwork.raw !== raw) {
      const base = now - sign * Number(raw) * 1000;
      const near = clockwork && Math.abs(clockwork.base - base) < JUMP;
      clockwork = { raw: raw, base: base, shown: near ? clockwork.shown : null };
      known.set(time, clockwork);
    }
    let shown = Math.floor((sign * (now - clockwork.base)) / 1000 + (sign < 0 ? 0.999 : 0));
    if (clockwork.shown !== null && (shown - clockwork.shown) * sign === -1) shown = clockwork.shown;
    clockwork.shown = shown;
    return shown;
  }

  function write(time, text) {
    if (text !== null && time.textContent !== text) time.textContent = text;
  }

  /** Write every clock within `root`. */
  function paint(root) {
    const now = performance.now();
    root.querySelectorAll("time[data-since], time[data-until], time[data-ago]").forEach(function (time) {
      if (time.closest("[data-stale]")) return; // its region could not be fetched: it does not go on pretending
      const data = time.dataset;
      if (data.since !== undefined) write(time, clock(seconds(time, data.since, 1, now)));
      else if (data.until !== undefined) write(time, clock(seconds(time, data.until, -1, now)));
      else write(time, ago(seconds(time, data.ago, 1, now)));
    });
  }

  /** The server has said this clock's number again, maybe the same one: it counts from now. */
  function renew(time) {
    const clockwork = known.get(time);
    if (clockwork) clockwork.raw = null;
  }

  /** Start or stop them; what started before goes on from the instant it is, not from where it stood. */
  function run(going) {
    if (going && !interval) {
      paint(document);
      interval = setInterval(() => paint(document), 1000);
    } else if (!going && interval) {
      clearInterval(interval);
      interval = 0;
    }
  }

  T.clocks = { paint: paint, run: run, renew: renew, clock: clock, get running() { return interval !== 0; } };
})();
