/* What a person does: forms with `data-act` are asked about when they say so, posted once, and answered by a toast. */
(function () {
  "use strict";
  var Turno = window.Turno, $ = Turno.$, words = Turno.words;

  /* ask({title, text, list, verb, typed, reason, cut}) answers a promise: null = no; {reason} = yes. */
  Turno.ask = function (question) {
    var dialog = document.getElementById("confirma"), form = $("form", dialog), verb = $("[data-verb]", dialog);
    var typed = $("#confirma-n"), reason = $("#confirma-motivo"), list = $("[data-list]", dialog);
    $("[data-title]", dialog).textContent = question.title;
    $("[data-text]", dialog).textContent = question.text || "";
    $("[data-text]", dialog).hidden = !question.text;
    list.replaceChildren();
    (question.list || []).forEach(function (line) {
      var item = document.createElement("li"), said = document.createElement("span");
      if (line.mark) item.append(Turno.icon("mark", line.mark));
      said.textContent = line.text;
      item.append(said);
      list.append(item);
    });
    list.hidden = !list.children.length;
    $("[data-typed]", dialog).hidden = !question.typed;
    $("[data-typed-label]", dialog).textContent = question.typed ? Turno.say(words.type_to_confirm, { text: String(question.typed) }) : "";
    typed.value = reason.value = "";
    typed.inputMode = /^[0-9]+$/.test(question.typed || "0") ? "numeric" : "text";
    $("[data-reason]", dialog).hidden = !question.reason;
    verb.textContent = question.verb;
    verb.disabled = Boolean(question.typed);
    typed.oninput = function () { verb.disabled = Boolean(question.typed) && typed.value.trim() !== String(question.typed); };
    return new Promise(function (resolve) {
      var said = null;
      form.onsubmit = function () { said = { reason: reason.value.trim() }; };
      dialog.onclose = function () { resolve(said); };
      dialog.showModal();
      /* A field first; without one the safe way out. */
      (question.typed ? typed : question.reason ? reason : $("[data-safe]", dialog)).focus();
    });
  };

  /* post(address, FormData or object) answers a promise of the JSON; rejects with {title, detail}. */
  Turno.post = function (address, body) {
    if (!(body instanceof FormData)) {
      var form = new FormData();
      Object.keys(body || {}).forEach(function (key) {
        [].concat(body[key]).forEach(function (value) { form.append(key, value); });
      });
      body = form;
    }
    /* The server's HTTP layer refuses an empty form with 400. */
    if (Array.from(body.keys()).length === 0) body.append("csrfmiddlewaretoken", Turno.csrf());
    return fetch(address, {
      method: "POST", body: body, credentials: "same-origin", redirect: "manual",
      headers: { "X-Turno-Act": "1", "X-CSRFToken": Turno.csrf(), "Accept": "application/json" }
    }).then(function (answer) {
      if (answer.type === "opaqueredirect") throw { title: words.failed, detail: words.not_signed_in };
      return answer.json().catch(function () { return {}; }).then(function (said) {
        if (!answer.ok) throw { title: said.title || words.failed, detail: said.detail || "", status: answer.status, errors: said.errors };
        return said;
      });
    }, function () { throw { title: words.failed, detail: words.no_answer }; });
  };

  Turno.told = function (said) {
    if (said.go) {
      if (said.toast) sessionStorage.setItem("turno.aviso", JSON.stringify(said));
      location.assign(said.go);
      return;
    }
    if (said.toast) Turno.toast(said.toast, { detail: said.detail, link: said.link });
    if (said.refresh && Turno.regions) Turno.regions.refreshAll();
  };
  Turno.refused = function (error) { Turno.toast(error.title || words.failed, { detail: error.detail, error: true }); };

  /* While it waits a button says so; `data-busy` are its words meanwhile. */
  function busy(button, on) {
    if (!button) return;
    var label = $("[data-label]", button);
    if (on) button.setAttribute("aria-busy", "true"); else button.removeAttribute("aria-busy");
    if (!label || !button.dataset.busy) return;
    if (on) { label.dataset.idle = label.textContent; label.textContent = button.dataset.busy; }
    else label.textContent = label.dataset.idle;
  }

  document.addEventListener("submit", function (event) {
    var form = event.target.closest("form[data-act]");
    if (!form) return;
    event.preventDefault();
    var button = event.submitter || $("button", form);
    if (form.dataset.sent || (button && button.getAttribute("aria-disabled") === "true")) return;
    var body = new FormData(form, event.submitter);
    var asked = form.dataset.confirm
      ? Turno.ask({
        title: form.dataset.confirm, text: form.dataset.confirmText, verb: form.dataset.confirmVerb,
        typed: form.dataset.confirmTyped, reason: "confirmReason" in form.dataset
      })
      : Promise.resolve({});
    asked.then(function (yes) {
      if (yes === null) return null;
      if (yes.reason) body.set("reason", yes.reason);
      form.dataset.sent = "1";
      busy(button, true);
      return Turno.post(form.action, body).then(Turno.told, Turno.refused).finally(function () {
        delete form.dataset.sent;
        busy(button, false);
      });
    });
  });

  /* An act that does not apply keeps its place and its reason, and does nothing. */
  document.addEventListener("click", function (event) {
    var off = event.target.closest("[aria-disabled=true]");
    if (off) event.preventDefault();
  }, true);

  /* What the page before had to say. */
  var left = null;
  try { left = sessionStorage.getItem("turno.aviso"); sessionStorage.removeItem("turno.aviso"); } catch (error) { /* nothing kept */ }
  if (left) {
    var said = JSON.parse(left);
    Turno.toast(said.toast, { detail: said.detail, link: said.link });
  }
})();
