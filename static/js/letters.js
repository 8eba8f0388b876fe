/* Dead letters: the bar over those chosen; acts and questions are the server's (bulk.js). */
(function () {
  "use strict";
  const T = window.Turno, bar = T.$("[data-bulk]");
  const ACTS = ["requeue", "discard"];

  function paint() {
    if (!bar) return;
    const n = T.selection.size, line = T.$("[data-bulk-n]", bar), text = T.say(T.words.selected_jobs, { n: n });
    bar.hidden = n === 0;
    document.documentElement.toggleAttribute("data-selecting", n > 0);
    if (line.textContent !== text) line.textContent = text;
    ACTS.forEach(function (act) {
      const button = T.$("[data-do=" + act + "]", bar);
      T.$("b", button).textContent = n.toLocaleString(document.documentElement.lang);
      button.disabled = n === 0;
    });
  }
  document.addEventListener("turno:selected", paint);
  document.addEventListener("click", function (event) {
    const button = event.target.closest("[data-do]");
    if (!button || !bar || !bar.contains(button)) return;
    T.bulk.act({ act: button.dataset.do, target: "letters", ids: T.selection.ids(button.dataset.do) }).then(function (run) {
      if (run === null) return;
      T.selection.clear();
      const title = document.getElementById("lista-t");
      if (title) title.focus();
    });
  });

  /* Filters are applied when a choice is made, or Enter is pressed. */
  document.addEventListener("change", function (event) {
    const form = event.target.closest("form[data-auto]");
    if (form && event.target.matches("select")) form.requestSubmit();
  });
  document.addEventListener("submit", function (event) {
    const form = event.target.closest("form[data-auto]");
    if (form) T.$$("input, select", form).forEach(function (field) { field.disabled = !field.value; });
  });
  window.addEventListener("pageshow", function () {
    T.$$("form[data-auto] :disabled").forEach(function (field) { field.disabled = false; });
  });

  /* What is still under way when the page is opened. */
  T.$$("[data-run]").forEach(function (mark) {
    fetch(mark.dataset.run, { headers: { "Accept": "application/json" } }).then((answer) => answer.json()).then(function (said) {
      if (said.run && !said.run.ended) T.bulk.follow(said.run).catch(T.refused);
    }).catch(function () { /* the next page tries again */ });
  });
  paint();
})();
