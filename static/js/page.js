/* What works better with a script: theme, showing a typed key, copying.
   Controls that need it carry `hidden` and are shown here. */
(function () {
  "use strict";
  var root = document.documentElement;

  function all(selector) { return Array.prototype.slice.call(document.querySelectorAll(selector)); }

  function dark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function toggleTheme() {
    var next = dark() ? "light" : "dark";
    root.dataset.theme = next;
    try { localStorage.setItem("turno.tema", next); } catch (error) { /* lasts for this page */ }
  }

  function peek(button) {
    var field = document.getElementById(button.dataset.peek);
    var show = field.type === "password";
    field.type = show ? "text" : "password";
    button.setAttribute("aria-pressed", String(show));
  }

  function copy(button) {
    var said = document.getElementById(button.dataset.said);
    navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent.trim()).then(function () {
      if (said) said.textContent = button.dataset.done;
      else if (window.Turno && Turno.toast) Turno.toast(Turno.words.copied);
    }, function () { /* refused by the browser: the text can still be selected */
      if (window.Turno && Turno.toast) Turno.toast(Turno.words.not_copied, { error: true });
    });
  }

  document.addEventListener("click", function (event) {
    var button = event.target.closest("[data-theme-toggle], [data-peek], [data-copy]");
    if (!button) return;
    if (button.matches("[data-theme-toggle]")) { if (!(window.Turno && Turno.nextTheme)) toggleTheme(); } // else ui.js
    else if (button.matches("[data-peek]")) peek(button);
    else copy(button);
  });

  all("[data-scripted]").forEach(function (control) { control.hidden = false; });
})();
