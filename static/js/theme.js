/* The chosen theme before the first paint. A file of its own: the CSP takes no script in the HTML. */
(function () {
  "use strict";
  var chosen = null;
  try { chosen = localStorage.getItem("turno.tema"); } catch (error) { /* no storage: the system's preference holds */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
