/* Causes open and close in place: the example is fetched once, and again after an act of ours. What is open stands in
   the address, and while something is open the groups keep their order. */
(function () {
  "use strict";
  const T = window.Turno;

  function groups() { return T.$$("#grupos .grp"); }
  function toggle(group) { return T.$(".grp__t", group); }
  function isOpen(group) { return toggle(group).getAttribute("aria-expanded") === "true"; }
  function body(group) { return T.$(".grp__body", group); }

  function remember() {
    const url = new URL(location.href);
    url.searchParams.delete("aberta");
    groups().filter(isOpen).forEach(function (group) { url.searchParams.append("aberta", group.dataset.cause); });
    history.replaceState(history.state, "", url);
  }

  function load(group) {
    const place = body(group);
    place.dataset.count = group.dataset.count;
    return fetch(toggle(group).dataset.example, { credentials: "same-origin", redirect: "manual" }).then(function (answer) {
      if (answer.status === 404) { place.replaceChildren(); return; } // its last letter has left
      if (!answer.ok) throw { title: T.words.failed, detail: answer.type === "opaqueredirect" ? T.words.not_signed_in : "" };
      return answer.text().then(function (html) {
        const opened = T.$$("details[open]", place).map((details) => T.$$("details", place).indexOf(details));
        place.innerHTML = html;
        T.$$("details", place).forEach(function (details, index) { details.open = opened.includes(index); });
        if (T.clocks) T.clocks.paint(place);
        place.dispatchEvent(new CustomEvent("turno:refreshed", { bubbles: true }));
      });
    }, function () { throw { title: T.words.failed, detail: T.words.no_answer }; });
  }

  function set(group, open) {
    toggle(group).setAttribute("aria-expanded", String(open));
    body(group).hidden = !open;
    remember();
  }

  document.addEventListener("click", function (event) {
    const link = event.target.closest(".grp__t");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const group = link.closest(".grp");
    if (isOpen(group)) { set(group, false); return; }
    if (body(group).children.length && body(group).dataset.count === group.dataset.count) { set(group, true); return; }
    link.setAttribute("aria-busy", "true");
    load(group).then(function () { set(group, true); }, T.refused).finally(function () { link.removeAttribute("aria-busy"); });
  });
  document.addEventListener("keydown", function (event) {
    const link = event.target.closest && event.target.closest(".grp__t");
    if (link && event.key === " ") { event.preventDefault(); link.click(); }
  });

  document.addEventListener("htmx:config:request", function (event) {
    const ctx = event.detail && event.detail.ctx;
    if (!ctx || !ctx.sourceElement || ctx.sourceElement.id !== "grupos" || !groups().some(isOpen)) return;
    const order = groups().map((group) => group.dataset.cause).join(",");
    ctx.request.action += (ctx.request.action.includes("?") ? "&" : "?") + "ordem_atual=" + encodeURIComponent(order);
  });
  document.addEventListener("turno:bulk", function () { groups().filter(isOpen).forEach(function (group) { load(group).catch(T.refused); }); });
})();
