/* Pausing asks first: what runs on, what waits, why, and for how long. What is wrong is said in the dialog, beside its
   field; so are the settings of a queue. Without this script the button of a row pauses at once. */
(function () {
  "use strict";
  const Turno = window.Turno, $ = Turno.$, $$ = Turno.$$;

  function ask(row) {
    const dialog = document.getElementById("pausar-f"), form = $("form", dialog), title = $("[data-title]", dialog);
    form.reset();
    clear(form);
    form.elements.value.value = row.dataset.pause;
    title.textContent = Turno.say(title.dataset.title, { name: row.dataset.pause });
    $("[data-asks]", dialog).textContent = row.dataset.text;
    dialog.showModal();
    form.elements.reason.focus();
  }

  function clear(form) {
    $$("[aria-invalid]", form).forEach(function (field) { field.removeAttribute("aria-invalid"); });
    const wrong = $("[data-wrong]", form);
    wrong.hidden = true;
    wrong.textContent = "";
  }

  /** Under the fields: what the server refused, and the focus in the first field that it names. */
  function refused(form, error) {
    const names = Object.keys(error.errors || {}), fields = names.map((name) => form.elements[name]).filter(Boolean);
    fields.forEach(function (field) { field.setAttribute("aria-invalid", "true"); });
    const wrong = $("[data-wrong]", form), said = document.createElement("span");
    const sentences = names.map((name) => error.errors[name][0]);
    said.textContent = sentences.length ? sentences.join(" ") : [error.title, error.detail].filter(Boolean).join(" ");
    wrong.replaceChildren(Turno.icon("mark", "failure"), said);
    wrong.hidden = false;
    if (fields.length) fields[0].focus();
  }

  function send(form) {
    const button = $("button[type=submit]", form), dialog = form.closest("dialog");
    if (form.dataset.sent || button.getAttribute("aria-disabled") === "true") return;
    form.dataset.sent = "1";
    button.setAttribute("aria-busy", "true");
    clear(form);
    Turno.post(form.action, new FormData(form)).then(function (said) {
      if (dialog) { dialog.close(); form.reset(); }
      Turno.told(said);
    }, function (error) { refused(form, error); }).finally(function () {
      delete form.dataset.sent;
      button.removeAttribute("aria-busy");
    });
  }

  document.addEventListener("submit", function (event) {
    const form = event.target;
    if (form.matches("form[data-pause]")) {
      event.preventDefault();
      if ($("button", form).getAttribute("aria-disabled") !== "true") ask(form);
    } else if (form.matches("form[data-pause-form], form[data-settings-form]")) {
      event.preventDefault();
      send(form);
    }
  });
})();
