/* Regions: parts of the page that fetch themselves again when a signal names them; htmx fetches, its morph keeps nodes.
   A region has an id, data-live (topics), hx-get, hx-trigger="turno:refresh", hx-swap="outerMorph"; data-every (ms,
   least time between two fetches), data-poll (ms, fetch without a signal), data-live-ids (only when a named id is in
   it). Once a minute, and after a time away, it is asked for whole and not for what changed: whatever went wrong ends
   there, also a clock that stood still while the machine slept. Nothing is fetched while the page is paused, hidden or cut off; on return each region is, once. */
(function () {
  "use strict";
  const T = (window.Turno = window.Turno || {});
  const REGION = "[data-live][hx-get][id]";
  const EVERY = 1000, CALM = 3, HELD = 10000, LOOK = 250, GIVEN_UP = 20000, RETRY_MOST = 30000, WHOLE = 60000;
  const states = new Map(); // id -> what is known of the region
  let going = false; // whether anything may be fetched

  function all() { return Array.from(document.querySelectorAll(REGION)); }
  function number(text, other) { const value = Number(text); return value > 0 ? value : other; }
  function now() { return performance.now(); }

  function state(region) {
    if (!states.has(region.id)) {
      states.set(region.id, { dirty: false, busy: 0, timer: 0, last: 0, next: 0, whole: now(), failures: 0, held: 0, seen: region.dataset.seen || null });
    }
    return states.get(region.id);
  }

  function mark(region) {
    state(region).dirty = true;
    plan(region);
  }

  /** Fetch when it may be: `data-every` after the last time, later after failures. */
  function plan(region) {
    const st = state(region);
    if (!going || !st.dirty || st.timer) return;
    if (st.busy && now() - st.busy < GIVEN_UP) return;
    st.timer = setTimeout(function () {
      st.timer = 0;
      const current = document.getElementById(region.id);
      if (!going || !current) return;
      if (keeps(current, st)) hold(current, st);
      else fetchNow(current, st);
    }, Math.max(0, st.next - now()));
  }

  function fetchNow(region, st) {
    st.dirty = false;
    st.busy = st.last = now();
    st.next = st.last + number(region.dataset.every, EVERY);
    region.dispatchEvent(new CustomEvent("turno:refresh"));
  }

  /** Text that somebody has selected in the region stays for a while: what they read must not change under the hand. */
  function keeps(region, st) {
    const selection = document.getSelection();
    const inside = selection && !selection.isCollapsed && selection.rangeCount
      && selection.getRangeAt(0).intersectsNode(region);
    if (!inside) st.held = 0;
    else if (!st.held) st.held = now();
    return Boolean(inside) && now() - st.held < HELD;
  }

  function hold(region, st) {
    st.dirty = true;
    st.next = now() + LOOK;
    plan(region);
  }

  function failed(region, st) {
    st.failures += 1;
    st.dirty = true;
    st.next = now() + Math.min(RETRY_MOST, 1000 * 2 ** st.failures) * (0.75 + Math.random() / 2);
    if (st.failures > 2) region.dataset.stale = "";
  }

  /** A signal: {topics, jobs, workers}; ids null: too many to name. */
  function signal(message) {
    const topics = new Set(message.topics || []);
    all().forEach(function (region) {
      const heard = region.dataset.live.split(/\s+/).filter((topic) => topics.has(topic));
      if (heard.length && (region.dataset.liveIds === undefined || names(region, heard, message))) mark(region);
    });
  }

  function names(region, heard, message) {
    return heard.some(function (topic) {
      const kind = { jobs: "job", workers: "worker" }[topic];
      if (!kind || message[topic] === null) return true;
      const ids = new Set(message[topic]);
      const within = Array.from(region.querySelectorAll("[data-" + kind + "]"));
      return ids.size > 0 && [region].concat(within).some((element) => ids.has(element.dataset[kind]));
    });
  }

  /** Every region is to be fetched: after a time without signals. */
  function refreshAll() {
    all().forEach(function (region) {
      const st = state(region);
      clearTimeout(st.timer);
      st.timer = st.failures = st.next = 0;
      st.whole = -Infinity;
      mark(region);
    });
  }

  function run(may) {
    going = may;
    if (going) all().forEach(plan);
  }

  /** Once a second: what is fetched without a signal. `least` (ms): every region at least that often, 0: as it says. */
  function tick(least) {
    if (!going) return;
    all().forEach(function (region) {
      const own = number(region.dataset.poll, 0), st = state(region);
      const poll = least ? Math.max(own, least) : own;
      if (!st.last) st.last = now();
      if (poll && now() - st.last >= poll) mark(region);
      else if (now() - st.whole >= WHOLE && region.dataset.live !== "none") mark(region); // a signal may have died with its sender
    });
  }

  /* What htmx says of a region's request ------------------------------------------------------------------------ */

  function on(name, act) {
    document.addEventListener(name, function (event) {
      const ctx = event.detail && event.detail.ctx, region = ctx && ctx.sourceElement;
      if (region instanceof Element && region.matches(REGION)) act(event, ctx, region, state(region));
    });
  }

  on("htmx:config:request", function (_event, ctx, _region, st) {
    if (st.seen) ctx.request.headers["X-Turno-Seen"] = st.seen;
    st.asksWhole = now() - st.whole >= WHOLE;
    if (st.asksWhole) ctx.request.headers["X-Turno-Whole"] = "1";
  });

  on("htmx:before:response", function (event, ctx, region, st) {
    const answer = ctx.response.raw, moved = answer.redirected;
    if (moved || answer.status === 401) T.live.ended();
    if (moved || !(answer.ok || answer.status === 304)) {
      event.preventDefault(); // a page of an error is no part of this one
      failed(region, st);
      return;
    }
    st.failures = 0;
    st.next = Math.max(st.next, now() + CALM * (now() - st.last)); // a server that answers slowly has many to answer
    delete region.dataset.stale;
    if (st.asksWhole) st.whole = now();
    T.live.data(answer.headers.get("X-Turno-At"));
  });

  on("htmx:after:request", function (_event, ctx) {
    ctx.text = ctx.text.trim(); // a morph would put the blanks around the element into the page, again each time
  });

  on("htmx:before:swap", function (event, ctx, region, st) {
    if (ctx.response.status === 204) return;
    const main = event.detail.tasks.find((task) => task.type === "main");
    const root = main && main.fragment.firstElementChild;
    if (main && (!root || root.id !== region.id)) {
      event.preventDefault();
      failed(region, st);
      return;
    }
    if (keeps(region, st)) {
      event.preventDefault();
      hold(region, st);
      return;
    }
    event.detail.tasks.forEach((task) => bare(task.fragment));
    st.seen = ctx.response.headers.get("X-Turno-Seen");
    st.heirs = heirs(region);
  });

  on("htmx:after:swap", function (_event, _ctx, region, st) {
    if (st.heirs.length && document.activeElement === document.body) inherit(st.heirs);
    st.heirs = [];
    T.clocks.paint(region);
    region.dispatchEvent(new CustomEvent("turno:refreshed", { bubbles: true }));
  });

  on("htmx:error", function (_event, _ctx, region, st) {
    failed(region, st);
    T.live.unanswered();
  });

  on("htmx:finally:request", function (_event, _ctx, region, st) {
    st.busy = 0;
    plan(region);
  });

  /** The ids of what has the focus and of what would get it: the rows after its own, then those before. */
  function heirs(region) {
    const held = document.activeElement;
    if (!region.contains(held)) return [];
    const row = held.closest("[data-rows] > *"), rows = row ? Array.from(row.parentElement.children) : [];
    const place = rows.indexOf(row);
    return [held].concat(rows.slice(place + 1), rows.slice(0, Math.max(0, place)).reverse()).map((one) => one.id);
  }

  /** A row that left passes the focus on: to another one's link, or to the page's main part. */
  function inherit(ids) {
    const heir = ids.map((id) => id && document.getElementById(id)).find(Boolean);
    const link = heir && (heir.matches("a, button, input, summary, [tabindex]") ? heir : T.$("a, button", heir));
    (link || document.getElementById("conteudo")).focus({ preventScroll: true });
  }

  function bare(fragment) {
    [fragment.firstChild, fragment.lastChild].forEach(function (node) {
      if (node && node.nodeType === Node.TEXT_NODE && !node.nodeValue.trim()) node.remove();
    });
  }

  T.regions = { signal: signal, refreshAll: refreshAll, run: run, tick: tick, mark: mark };
})();
