/* What must stand before the first paint: the chosen theme, and the viewer's zone, in which the server writes instants.
   A file of its own: the CSP takes no script in the HTML. */
(function () {
  "use strict";
  var chosen = null;
  try { chosen = localStorage.getItem("turno.tema"); } catch (error) { /* no storage: the system's preference holds */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;

  /* The first page of a browser came in the house's zone: it is asked for once more in the viewer's. */
  if (document.cookie.indexOf("turno_fuso=") >= 0) return;
  var zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!zone) return;
  document.cookie = "turno_fuso=" + zone + "; path=/; max-age=31536000; samesite=lax" + (location.protocol === "https:" ? "; secure" : "");
  var kept = document.cookie.indexOf("turno_fuso=") >= 0;
  if (kept && document.querySelector("meta[name=turno-hub]") === null) return; /* a page without instants */
  if (kept) location.reload();
})();
