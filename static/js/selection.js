/* Which jobs of the list are chosen: a set of ids that survives swaps of rows and paging, and belongs to one filter.
   `whole`: all that match, as the server counted them when it was asked. The ticks on screen are painted from here. */
(function () {
  "use strict";
  var Turno = window.Turno, $ = Turno.$, $$ = Turno.$$;
  var bar = $("[data-bulk]"), KEPT = "turno.selecao";
  var picked = new Map(); /* id -> {can: "cancel delete", state: "Failed"} */
  var whole = null, last = null;

  function boxes() { return $$("input[data-row]"); }
  function what(box) { return { can: box.dataset.can, state: box.dataset.state }; }

  function keep() {
    try {
      sessionStorage.setItem(KEPT, JSON.stringify({ key: bar ? bar.dataset.key : "", picked: Array.from(picked) }));
    } catch (error) { /* lasts for this page */ }
  }
  function restore() {
    try {
      var kept = JSON.parse(sessionStorage.getItem(KEPT) || "null");
      if (kept && bar && kept.key === bar.dataset.key) picked = new Map(kept.picked);
      else if (bar) sessionStorage.removeItem(KEPT);
    } catch (error) { /* what is kept is not ours to read: nothing is chosen */ }
  }

  function paint() {
    var on = 0, shown = boxes();
    shown.forEach(function (box) {
      if (picked.has(box.value)) picked.set(box.value, what(box));
      var chosen = Boolean(whole) || picked.has(box.value);
      if (box.checked !== chosen) box.checked = chosen;
      var row = box.closest("tr");
      if (row.getAttribute("aria-selected") !== String(chosen)) row.setAttribute("aria-selected", String(chosen));
      if (chosen) on += 1;
    });
    var all = $("input[data-all]");
    if (all) {
      all.checked = on > 0 && on === shown.length;
      all.indeterminate = on > 0 && on < shown.length;
    }
    document.dispatchEvent(new CustomEvent("turno:selected"));
  }

  function set(box, on) {
    if (on) picked.set(box.value, what(box)); else picked.delete(box.value);
  }
  function changed() {
    keep();
    paint();
  }

  document.addEventListener("click", function (event) {
    var box = event.target.closest("input[data-row]");
    if (box) {
      if (whole) { /* one less than all: those of this page stay chosen */
        whole = null;
        boxes().forEach(function (other) { set(other, true); });
      }
      var list = boxes(), from = last ? list.findIndex(function (one) { return one.value === last; }) : -1;
      var to = list.indexOf(box);
      if (event.shiftKey && from >= 0) {
        list.slice(Math.min(from, to), Math.max(from, to) + 1).forEach(function (one) { set(one, box.checked); });
      } else set(box, box.checked);
      last = box.value;
      changed();
      return;
    }
    var all = event.target.closest("input[data-all]");
    if (all) {
      whole = null;
      boxes().forEach(function (one) { set(one, all.checked); });
      changed();
      return;
    }
    if (event.target.closest("[data-clear]")) Turno.selection.clear();
  });

  document.addEventListener("turno:refreshed", paint);

  Turno.selection = {
    get size() { return picked.size; },
    get whole() { return whole; },
    set whole(found) { whole = found; paint(); },
    /* The ids to which an act applies, or all of them. */
    ids: function (act) {
      return Array.from(picked).filter(function (entry) {
        return !act || entry[1].can.split(" ").includes(act);
      }).map(function (entry) { return entry[0]; });
    },
    /* How many of those are in which state. */
    states: function (act) {
      var found = new Map();
      picked.forEach(function (one) {
        if (one.can.split(" ").includes(act)) found.set(one.state, (found.get(one.state) || 0) + 1);
      });
      return found;
    },
    drop: function (id) { if (picked.delete(id)) changed(); },
    clear: function () {
      picked.clear();
      whole = last = null;
      changed();
    }
  };
  restore();
  paint();
})();
