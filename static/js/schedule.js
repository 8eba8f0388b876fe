/* The editor of a recurring job. The server says what would come of the form while it is being filled in (htmx), and
   what is wrong, into a place beside each field; here fields are marked by those places, and what was typed is kept. */
(function () {
  "use strict";
  const T = window.Turno, form = T.$("form[data-editor]");
  if (!form) return;
  const payload = T.$("#f-payload", form), touched = form.elements.touched, save = T.$("button[type=submit]", form);
  let skeleton = help().dataset.skeleton, stored = text(), sending = false;

  function help() { return T.$("#f-payload-h", form); }
  function text() {
    const data = new FormData(form);
    ["touched", "csrfmiddlewaretoken"].forEach((name) => data.delete(name));
    return JSON.stringify(Array.from(data));
  }

  /** A field is wrong while its place says something. */
  function mark() {
    T.$$(".errs[data-for]", form).forEach(function (place) {
      const field = document.getElementById(place.dataset.for), wrong = Boolean(T.$(".err", place));
      if (wrong !== (field.getAttribute("aria-invalid") === "true")) {
        if (wrong) field.setAttribute("aria-invalid", "true"); else field.removeAttribute("aria-invalid");
      }
    });
  }

  /** A payload that nobody has written into follows the type. */
  function follow() {
    const next = help().dataset.skeleton;
    if (next === skeleton) return;
    if (!payload.value.trim() || payload.value.trim() === skeleton.trim()) payload.value = next;
    skeleton = next;
  }

  function first() {
    const field = T.$("[aria-invalid=true]", form), options = field && field.closest("details");
    if (options) options.open = true;
    if (field) field.focus();
    return field;
  }

  new MutationObserver(function () { follow(); mark(); })
    .observe(form, { childList: true, subtree: true, attributes: true, attributeFilter: ["data-skeleton"] });

  /* Of what was not touched nothing is said yet. */
  ["input", "change"].forEach(function (name) {
    form.addEventListener(name, function (event) {
      const names = new Set(touched.value.split(",").filter(Boolean));
      if (event.target.name) names.add(event.target.name);
      touched.value = Array.from(names).join(",");
    }, true);
  });

  /* Whoever is not signed in any more gets another page, which is no part of this one. */
  document.addEventListener("htmx:before:response", function (event) {
    const ctx = event.detail && event.detail.ctx;
    if (!ctx || ctx.sourceElement !== form) return;
    const answer = ctx.response.raw;
    if (answer.redirected || answer.status === 401) {
      event.preventDefault();
      T.live.ended();
    }
  });

  function line(said, name) {
    const told = document.createElement("p"), words = document.createElement("span");
    told.className = "err";
    if (name) {
      const code = document.createElement("code");
      code.textContent = name;
      words.append(code, ": ");
    }
    words.append(said);
    told.append(T.icon("mark", "failure"), words);
    return told;
  }

  /** What a refusal says, each beside its field; the rest above the form. */
  function refused(error) {
    const errors = error.errors || {}, alert = T.$("#e-alert", form);
    let placed = 0;
    T.$$(".errs", form).forEach((place) => place.replaceChildren());
    Object.keys(errors).forEach(function (name) {
      const dot = name.indexOf("."), place = document.getElementById("e-" + (dot < 0 ? name : name.slice(0, dot)));
      if (!place) return;
      [].concat(errors[name]).forEach((said) => place.append(line(said, dot < 0 ? "" : name.slice(dot + 1))));
      placed += 1;
    });
    touched.value = "*";
    mark();
    alert.replaceChildren();
    if (placed) {
      alert.removeAttribute("class");
      alert.removeAttribute("role");
      first();
      form.dispatchEvent(new Event("change", { bubbles: true })); // the tally
      return;
    }
    const told = document.createElement("p"), title = document.createElement("b");
    title.textContent = error.title || T.words.failed;
    told.append(title, " ", error.detail || "");
    if (error.status === 409 && form.dataset.stored) {
      const link = document.createElement("a");
      link.href = form.action;
      link.target = "_blank";
      link.rel = "noopener";
      link.textContent = form.dataset.stored;
      told.append(" ", link);
    }
    alert.className = "note wrongnote";
    alert.setAttribute("role", "alert");
    alert.tabIndex = -1;
    alert.append(T.icon("mark", "failure"), told);
    alert.focus();
  }

  form.addEventListener("submit", function (event) {
    event.preventDefault();
    if (sending || !save || save.getAttribute("aria-disabled") === "true") return;
    const label = T.$("[data-label]", save), idle = label.textContent;
    sending = true;
    save.setAttribute("aria-busy", "true");
    label.textContent = form.dataset.busy;
    T.post(form.action, new FormData(form)).then(function (said) {
      stored = text();
      T.told(said);
    }, refused).finally(function () {
      sending = false;
      save.removeAttribute("aria-busy");
      label.textContent = idle;
    });
  });

  /* Whoever leaves with something typed is asked by the browser. */
  window.addEventListener("beforeunload", function (event) {
    if (save && text() !== stored) event.preventDefault();
  });

  mark();
  first();
})();
