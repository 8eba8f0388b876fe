/* The palette (Ctrl K): screens by name, jobs by id, type or key. */
(function () {
  "use strict";
  var Turno = window.Turno, $ = Turno.$, $$ = Turno.$$;
  var dialog = document.getElementById("paleta"), field = $("#paleta-busca"), list = $("#achados");
  if (!dialog) return;
  var screens = $$("a", list), timer = 0, asked = 0;

  function options() { return $$("[role=option]", list).filter(function (option) { return !option.hidden; }); }
  function choose(option) {
    $$("[role=option]", list).forEach(function (one) { one.setAttribute("aria-selected", String(one === option)); });
    if (!option) { field.removeAttribute("aria-activedescendant"); return; }
    option.id = option.id || "achado-" + Math.random().toString(36).slice(2, 8);
    field.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  }
  function chosen() { return $("[role=option][aria-selected=true]:not([hidden])", list); }

  function plain(text) { return text.toLowerCase().normalize("NFD").replace(/[\u0300-\u036f]/g, ""); }
  function filter() {
    var text = plain(field.value.trim());
    screens.forEach(function (screen) {
      screen.hidden = text !== "" && plain(screen.textContent + " " + screen.dataset.words).indexOf(text) < 0;
    });
    $$("[data-job-found]", list).forEach(function (old) { old.remove(); });
    choose(options()[0]);
    clearTimeout(timer);
    asked += 1;
    if (text) timer = setTimeout(ask, 200, asked);
  }
  function ask(number) {
    fetch(field.dataset.found + "?q=" + encodeURIComponent(field.value.trim()), { headers: { "X-Turno-Act": "1" }, redirect: "manual" })
      .then(function (answer) { return answer.ok ? answer.text() : ""; }, function () { return ""; })
      .then(function (html) {
        if (number !== asked) return; /* more was typed meanwhile */
        var found = new DOMParser().parseFromString(html, "text/html").body;
        Array.from(found.children).forEach(function (one) { one.dataset.jobFound = ""; });
        list.prepend.apply(list, Array.from(found.children));
        choose(options()[0]);
      });
  }

  field.addEventListener("input", filter);
  field.addEventListener("keydown", function (event) {
    var all = options(), at = all.indexOf(chosen());
    var step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) { event.preventDefault(); choose(all[(at + step + all.length) % all.length]); }
    if (event.key === "Enter") {
      event.preventDefault();
      var text = field.value.trim();
      if (chosen()) location.assign(chosen().href);
      else if (text) location.assign(field.dataset.search + "?busca=" + encodeURIComponent(text)); /* the finds are not here yet */
    }
  });
  dialog.addEventListener("close", function () { field.value = ""; filter(); });
  choose(options()[0]);
})();
