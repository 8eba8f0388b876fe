/* Recurring jobs: rows open in place and stay open through updates; the switch acts at once and can be undone. */
(function () {
  "use strict";
  const T = window.Turno, LIST = "recorrentes-lista";
  let turns = 0, asked = ""; // how things stood when the list was asked for last

  function row(opener) { return opener.closest("tr"); }
  function body(opener) { return document.getElementById(opener.getAttribute("aria-controls")); }
  function isOpen(opener) { return opener.getAttribute("aria-expanded") === "true"; }
  function openers() { return T.$$("#" + LIST + " [data-detail]"); }
  function ids() { return openers().filter(isOpen).map((opener) => opener.id.slice(2)); }

  function stands() { return ids().join(",") + " " + turns; }

  /** What is open stands in the address. */
  function remember() {
    const url = new URL(location.href);
    url.searchParams.delete("aberta");
    if (ids().length) url.searchParams.set("aberta", ids().join(","));
    history.replaceState(history.state, "", url);
  }

  function set(opener, open) {
    opener.setAttribute("aria-expanded", String(open));
    row(opener).classList.toggle("has-more", open);
    remember();
  }

  function load(opener) {
    return fetch(opener.dataset.detail, { credentials: "same-origin", redirect: "manual" }).then(function (answer) {
      if (!answer.ok) throw { title: T.words.failed, detail: answer.type === "opaqueredirect" ? T.words.not_signed_in : "" };
      return answer.text().then(function (html) {
        const holder = document.createElement("template");
        holder.innerHTML = html;
        const more = holder.content.firstElementChild;
        if (body(opener)) body(opener).remove();
        row(opener).after(more);
        T.clocks.paint(more);
        set(opener, true);
      });
    }, function () { throw { title: T.words.failed, detail: T.words.no_answer }; });
  }

  document.addEventListener("click", function (event) {
    const opener = event.target.closest("[data-detail]");
    if (!opener || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (isOpen(opener)) {
      if (body(opener)) body(opener).remove();
      set(opener, false);
    } else if (!opener.hasAttribute("aria-busy")) {
      opener.setAttribute("aria-busy", "true");
      load(opener).catch(T.refused).finally(function () { opener.removeAttribute("aria-busy"); });
    }
  });
  document.addEventListener("keydown", function (event) {
    const opener = event.target.closest && event.target.closest("[data-detail]");
    if (opener && event.key === " ") { event.preventDefault(); opener.click(); }
  });
  document.addEventListener("htmx:config:request", function (event) {
    const ctx = event.detail && event.detail.ctx;
    if (!ctx || !ctx.sourceElement || ctx.sourceElement.id !== LIST) return;
    asked = stands();
    if (ids().length) ctx.request.action += "&aberta=" + ids().join(",");
  });
  /* An answer to a question from before a row was opened, or a switch turned, would undo that: it is asked again. */
  document.addEventListener("htmx:before:swap", function (event) {
    const ctx = event.detail && event.detail.ctx, list = ctx && ctx.sourceElement;
    if (!list || list.id !== LIST || asked === stands()) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    T.regions.mark(list);
  }, true);

  /** Turn one on or off; what was said offers the way back. */
  function turn(form, on, undoing) {
    const box = T.$("input[role=switch]", form), id = box.id;
    box.setAttribute("aria-busy", "true");
    turns += 1;
    return T.post(on ? form.dataset.on : form.dataset.off, {}).then(function (said) {
      const toast = T.toast(said.toast), undo = document.createElement("button");
      if (!undoing) {
        undo.type = "button";
        undo.className = "linkish";
        undo.textContent = form.dataset.undo;
        undo.addEventListener("click", function () {
          const now = document.getElementById(id);
          toast.element.remove();
          if (!now) return;
          now.checked = !on;
          turn(now.form, !on, true);
          now.focus();
        });
        T.$("p", toast.element).append(" ", undo);
      }
      turns += 1;
      T.regions.refreshAll();
    }, function (error) {
      box.checked = !on;
      T.refused(error);
    }).finally(function () { box.removeAttribute("aria-busy"); });
  }

  document.addEventListener("change", function (event) {
    const form = event.target.closest("form[data-switch]");
    if (!form) return;
    if (event.target.hasAttribute("aria-busy")) { event.target.checked = !event.target.checked; return; }
    turn(form, event.target.checked, false);
  });
})();
