/* The list's fields, the menu of a row, and rows whose job was deleted. */
(function () {
  "use strict";
  var Turno = window.Turno, $ = Turno.$, $$ = Turno.$$;
  var data = JSON.parse(document.getElementById("selecao").textContent);

  /* A form asks for what is filled in, so that its address stays short. */
  function send(form) {
    $$("input, select", form).forEach(function (field) { if (!field.value || field.value === "entre") field.disabled = true; });
    form.submit();
  }
  document.addEventListener("submit", function (event) {
    if (!event.target.matches("[data-filters], [data-more-filters]")) return;
    event.preventDefault();
    send(event.target);
  });
  document.addEventListener("change", function (event) {
    var form = event.target.form;
    if (!form) return;
    if (form.matches("[data-jump]")) form.submit();
    else if (form.matches("[data-filters]") && event.target.matches("select")) {
      if (event.target.value === "entre") document.getElementById("filtros").showModal();
      else {
        $$("input[name=de], input[name=ate]", form).forEach(function (field) { if (event.target.name === "periodo") field.disabled = true; });
        send(form);
      }
    } else if (form.matches("[data-more-filters]")) recount(form);
  });
  /* The page may come back from the browser's memory with what was switched off. */
  window.addEventListener("pageshow", function () { $$("form [disabled]").forEach(function (field) { if (field.name) field.disabled = false; }); });

  /* The dialog's button says how many it would show. */
  var asking = null;
  function recount(form) {
    var shown = $("[data-number-shown]", form);
    if (asking) asking.abort();
    asking = new AbortController();
    var query = new URLSearchParams(new FormData(form));
    fetch(form.dataset.number + "?" + query, { signal: asking.signal }).then(function (answer) {
      return answer.ok ? answer.text() : "";
    }).then(function (text) { shown.textContent = text; }, function () { /* overtaken by the next one */ });
  }

  /* The menu of a row. */
  document.addEventListener("click", function (event) {
    var copy = event.target.closest("[data-copy-id]");
    if (copy) {
      copy.closest("details").open = false;
      navigator.clipboard.writeText(copy.dataset.copyId).then(
        function () { Turno.toast(Turno.words.copied); },
        function () { Turno.toast(Turno.words.not_copied, { error: true }); }
      );
      return;
    }
    var button = event.target.closest("[data-row-act]");
    if (!button || button.getAttribute("aria-disabled") === "true") return;
    var name = button.dataset.rowAct, row = button.closest("tr"), running = $(".mark--running", row);
    var menu = button.closest("details");
    menu.open = false;
    $("summary", menu).focus();
    var asked = Promise.resolve({}), act = data.acts[name];
    if (name === "delete" || (name === "cancel" && running)) {
      asked = Turno.ask({
        title: Turno.say(act.title, { n: 1 }), text: running ? data.words.cancel_one : Turno.say(act.text, { n: 1 }),
        list: [{ text: $(".c-job strong", row).textContent }], verb: $(".act__t", button).textContent,
        reason: act.reason
      });
    }
    asked.then(function (yes) {
      if (yes === null) return null;
      return Turno.post(button.dataset.url, yes.reason ? { reason: yes.reason } : {}).then(function (answer) {
        answer.go = null; /* the list stays */
        if (name === "delete") leave(row);
        Turno.told(answer);
        Turno.regions.refreshAll();
      }, Turno.refused);
    });
  });

  /* A deleted row passes the focus on. */
  function leave(row) {
    var next = row.nextElementSibling && $("a", row.nextElementSibling);
    (next || document.getElementById("lista-t")).focus();
  }

  /* What is deleted stays where it is, grey, until the list is loaded again. */
  document.addEventListener("htmx:before:swap", function (event) {
    (event.detail.tasks || []).forEach(function (task) {
      if (!task.fragment) return;
      $$("tr[data-gone]", task.fragment).forEach(function (gone) {
        var row = document.getElementById(gone.id);
        if (Turno.selection) Turno.selection.drop(gone.dataset.job);
        if (!row) return;
        var kept = row.cloneNode(true);
        kept.classList.add("is-gone");
        kept.setAttribute("data-gone", "");
        kept.setAttribute("aria-selected", "false");
        kept.setAttribute("data-keep", "class aria-selected");
        $(".c-state", kept).replaceChildren.apply($(".c-state", kept), Array.from($(".c-state", gone).childNodes));
        $$("input, details", kept).forEach(function (control) { control.remove(); });
        gone.replaceWith(kept);
        row.classList.add("is-gone");
      });
    });
  }, true);

  /* On a small screen the tabs are wider than it: the current one is in sight. */
  var current = $("#abas [aria-current]");
  if (current) current.parentElement.scrollLeft = current.offsetLeft - current.parentElement.offsetLeft - 16;

  /* The count in the tab stands in other places too. */
  document.addEventListener("turno:refreshed", function (event) {
    if (event.target.id !== "abas") return;
    var count = $("[data-total]", event.target), text = count ? count.textContent.trim() : "";
    $$("[data-total-copy]").forEach(function (copy) { copy.textContent = text; });
    $$("[data-total-line]").forEach(function (line) { line.hidden = !text; });
  });
})();
