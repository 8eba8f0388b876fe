/* What a morph leaves alone, and what of htmx is switched off. Loaded between htmx and the regions. */
(function () {
  "use strict";
  const T = (window.Turno = window.Turno || {});
  const CLOCK = "time[data-since], time[data-until], time[data-ago]";

  function refused() { throw new Error("Code in attributes is switched off."); }

  /** Whether the attribute belongs to who looks at the page: what they have opened, ticked, or what a script keeps. */
  function theirs(element, name) {
    if (name === "open") return element.matches("details, dialog");
    if (name === "checked") return element.matches("[data-row]");
    if (name === "data-here") return true;
    return (element.dataset.keep || "").split(/\s+/).includes(name);
  }

  window.htmx.registerExtension("turno", {
    init: function (api) { api.initSecurity(null, refused, refused); },
    htmx_before_on_init: function () { return false; },
    htmx_before_morph_attr: function (element, detail) { return !theirs(element, detail.attrName); },
    htmx_before_morph_node: function (element) {
      if (element.nodeType === Node.ELEMENT_NODE && element.matches(CLOCK) && T.clocks) T.clocks.renew(element);
      return true;
    }
  });
})();
