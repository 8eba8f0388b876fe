/* The shift board: one tab stop a group with the arrows inside, the line that reads a worker, the filter, the wall's
   clock. Rows come and change on the server (regions.js); what a viewer sets on them is in their `data-keep`. */
(function () {
  "use strict";
  const T = window.Turno, $ = T.$, $$ = T.$$, root = document.documentElement;
  const board = document.getElementById("quadro");
  const body = document.getElementById("quadro-corpo");
  if (!board || !body) return;

  /* One tab stop a group ------------------------------------------------------------------------------------------ */

  function members(group) { return $$(".wk", group).filter((worker) => !worker.hidden); }

  /** The worker that Tab reaches: the one that was, else the first that is shown. */
  function stops() {
    $$("[data-roving]", body).forEach(function (group) {
      const shown = members(group), kept = shown.find((worker) => worker.tabIndex === 0 && worker.hasAttribute("tabindex"));
      const stop = kept || shown[0];
      $$(".wk", group).forEach(function (worker) { worker.tabIndex = worker === stop ? 0 : -1; });
    });
  }

  function columns(shown) {
    return Math.max(1, shown.filter((worker) => worker.offsetTop === shown[0].offsetTop).length);
  }

  function step(key, at, shown) {
    switch (key) {
      case "ArrowRight": return at + 1;
      case "ArrowLeft": return at - 1;
      case "ArrowDown": return at + columns(shown);
      case "ArrowUp": return at - columns(shown);
      case "Home": return 0;
      case "End": return shown.length - 1;
      default: return -1;
    }
  }

  body.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const here = event.target.closest(".wk"), group = event.target.closest("[data-roving]");
    if (!here || !group) return;
    const shown = members(group), next = shown[step(event.key, shown.indexOf(here), shown)];
    if (!next) return;
    event.preventDefault();
    here.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });

  /* The line at the foot ------------------------------------------------------------------------------------------ */

  const line = $("[data-lupa]");
  let read = null; // the worker that it is about

  function show() {
    const words = read && read.isConnected ? $("[data-read]", read) : null;
    if (!line || !words) return;
    T.clocks.paint(words); // its clock has run out of sight
    if (line.dataset.said === words.innerHTML) return;
    line.dataset.said = words.innerHTML;
    line.replaceChildren.apply(line, Array.from(words.childNodes, (node) => node.cloneNode(true)));
    $$("time[data-since]", line).forEach(function (time) {
      time.dataset.since = seconds(time.textContent);
    });
  }

  /** "2:05:10" as seconds: the copy's clock begins where the worker's stands. */
  function seconds(text) { return text.split(":").reduce((sum, part) => sum * 60 + Number(part), 0); }

  ["focusin", "mouseover"].forEach(function (name) {
    body.addEventListener(name, function (event) {
      const worker = event.target.closest(".wk");
      if (!worker || worker === read) return;
      read = worker;
      show();
    });
  });

  /* The filter: which rows it hides is decided when the viewer sets it, so that nothing comes or goes by itself ------ */

  const field = document.getElementById("quadro-filtro");
  let only = "all";

  function fits(row) {
    const text = field ? field.value.trim().toLowerCase() : "";
    return row.dataset.name.includes(text) && (only === "all" || "trouble" in row.dataset);
  }

  function filter() {
    $$("[data-name]", body).forEach(function (row) { row.hidden = !fits(row); });
    $$(".pool", body).forEach(function (pool) { pool.hidden = members(pool).length === 0; });
    stops();
  }

  if (field) field.addEventListener("input", filter);
  board.addEventListener("click", function (event) {
    const button = event.target.closest("[data-board-show]");
    if (button) {
      only = button.dataset.boardShow;
      $$("[data-board-show]", board).forEach(function (one) {
        one.setAttribute("aria-pressed", String(one === button));
      });
      filter();
    }
    if (event.target.closest("[data-reload]")) {
      event.preventDefault();
      location.reload();
    }
  });

  board.addEventListener("turno:refreshed", function () {
    stops();
    show();
  });

  /* The wall's clock ---------------------------------------------------------------------------------------------- */

  const wall = $("[data-wall-clock]");
  const zone = ($("meta[name=turno-zone]") || {}).content;
  const how = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };

  function told() {
    try {
      return new Intl.DateTimeFormat(root.lang, { timeZone: zone, ...how });
    } catch (error) { // a zone that this browser does not know
      return new Intl.DateTimeFormat(root.lang, how);
    }
  }

  function tick(wording) {
    if (root.dataset.live === "on" && "wall" in root.dataset) wall.textContent = wording.format(T.live.now());
  }

  if (wall) {
    const wording = told();
    tick(wording);
    setInterval(tick, 1000, wording);
    new MutationObserver(() => tick(wording)).observe(root, { attributeFilter: ["data-wall"] });
  }

  stops();
})();
