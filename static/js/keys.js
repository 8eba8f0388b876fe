/* The keyboard: single keys work outside of fields and dialogs, and can be switched off (WCAG 2.1.4). */
(function () {
  "use strict";
  var Turno = window.Turno, $ = Turno.$, $$ = Turno.$$, root = document.documentElement;
  var GO = { p: "painel", t: "tarefas", r: "recorrentes", w: "workers", f: "filas", e: "erros" };
  var pressed = 0; /* when `g` was */

  function address(screen) {
    var link = $('.rail a[href$="/' + screen + '"], .rail a[href$="/' + screen + '/"]');
    return link ? link.href : null;
  }

  function rows() { return $$("[data-rows] > tr:not(.more), [data-rows] > [data-row-item]"); }
  function here() { /* the row that has the focus, else where the keys were last: a live update leaves that mark alone */
    return rows().find(function (row) { return row.contains(document.activeElement); }) || $("[data-rows] > [data-here]");
  }
  function move(step) {
    var all = rows();
    if (!all.length) return;
    var at = all.indexOf(here());
    var next = all[Math.max(0, Math.min(all.length - 1, at + step))];
    all.forEach(function (row) { delete row.dataset.here; });
    next.dataset.here = "";
    next.scrollIntoView({ block: "nearest" });
    var link = $("a", next);
    if (link) link.focus({ preventScroll: true });
  }

  Turno.wall = function (on) {
    var url = new URL(location.href);
    if (on) { root.dataset.wall = ""; url.searchParams.set("mural", ""); }
    else { delete root.dataset.wall; url.searchParams.delete("mural"); }
    history.replaceState(null, "", url);
  };
  function hasWall() { return Boolean($("[data-wall-able]")); }
  if (hasWall() && new URLSearchParams(location.search).has("mural")) root.dataset.wall = "";
  document.addEventListener("click", function (event) { if (event.target.closest("[data-wall-toggle]")) Turno.wall(true); });

  function search(event) {
    event.preventDefault();
    var field = $("main input[type=search]");
    if (field && field.offsetParent) field.focus(); else document.getElementById("paleta").showModal();
  }

  var ACTS = {
    g: function () { pressed = Date.now(); },
    "/": search,
    "?": function () { document.getElementById("atalhos").showModal(); },
    ".": function () { if (Turno.live) Turno.live.toggle(); },
    m: function () { if (hasWall()) Turno.wall(!("wall" in root.dataset)); },
    t: function () { Turno.nextTheme(); },
    j: function () { move(1); },
    k: function () { move(-1); },
    x: function () { var box = here() && $("input[data-row]", here()); if (box) box.click(); }
  };

  document.addEventListener("keydown", function (event) {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      if (!$("dialog[open]")) document.getElementById("paleta").showModal();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || $("dialog[open]")) return;
    if (event.key === "Escape") {
      if ("wall" in root.dataset) Turno.wall(false);
      else if (Turno.selection) Turno.selection.clear();
      return;
    }
    var target = event.target;
    if (target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.nodeName)) return;
    if (target.nodeName === "INPUT" && !/^(checkbox|radio)$/.test(target.type)) return;
    if (Turno.store.get("turno.atalhos") === "off") return;
    if (pressed && Date.now() - pressed < 1500) {
      pressed = 0;
      var screen = GO[event.key] && address(GO[event.key]);
      if (screen) location.assign(screen);
      return;
    }
    if (ACTS[event.key]) ACTS[event.key](event);
  });

  var toggle = $("[data-keys-toggle]");
  if (toggle) {
    toggle.checked = Turno.store.get("turno.atalhos") !== "off";
    toggle.addEventListener("change", function () { Turno.store.set("turno.atalhos", toggle.checked ? "on" : "off"); });
  }
})();
