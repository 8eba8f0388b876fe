/* The log of a job: new lines are appended when its region "agora" hears of the job, older ones come by request, and
   the scroll stays where the reader left it. At most `data-most` lines are in the page. */
(function () {
  "use strict";
  const T = window.Turno, panel = document.getElementById("log-painel");
  if (!panel) return;
  const box = document.getElementById("log-caixa"), list = document.getElementById("log");
  const older = panel.querySelector("[data-log-older]"), none = panel.querySelector(".log__none");
  const follow = panel.querySelector("[data-log-follow]"), count = panel.querySelector("[data-log-count]");
  const most = Number(panel.dataset.most), NEAR = 24;
  let busy = false, again = false;

  const lines = () => list.querySelectorAll("[data-k]");
  const first = () => list.querySelector("[data-k]");
  const atEnd = () => box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
  const following = () => Boolean(follow && follow.checked);
  const toEnd = () => { box.scrollTop = box.scrollHeight; };

  function ask(values) {
    const query = new URLSearchParams(values);
    if (panel.dataset.level) query.set("nivel", panel.dataset.level);
    return fetch(panel.dataset.log + "?" + query, { headers: { Accept: "text/html" }, credentials: "same-origin" })
      .then(function (answer) {
        if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
        return answer.text().then(function (html) {
          const holder = document.createElement("template");
          holder.innerHTML = html;
          return { nodes: Array.from(holder.content.children), more: answer.headers.get("X-Turno-More") === "1" };
        });
      });
  }

  function tell() {
    const last = list.querySelector("[data-k]:last-of-type");
    none.hidden = Boolean(last);
    if (!last) return;
    panel.dataset.last = last.dataset.k;
    const place = last.dataset.k.split("-").map(Number);
    panel.dataset.execution = String(place[0]);
    if (!panel.dataset.level) count.textContent = T.say(T.words.log_lines, { n: place[1] });
  }

  /** Lines leave at the top; what is read stays under the eye. */
  function trimTop() {
    let over = lines().length - most;
    if (over <= 0) return;
    const before = box.scrollHeight, top = box.scrollTop;
    while (over > 0) {
      if (list.firstElementChild.matches("[data-k]")) over -= 1;
      list.firstElementChild.remove();
    }
    box.scrollTop = Math.max(0, top - (before - box.scrollHeight));
    older.parentElement.hidden = false;
  }

  function trimBottom() {
    let over = lines().length - most;
    while (over > 0) {
      if (list.lastElementChild.matches("[data-k]")) over -= 1;
      list.lastElementChild.remove();
    }
  }

  /** What was written since. Not while the reader is elsewhere in a full page: following again shows it. */
  function grow() {
    if (!("grows" in panel.dataset)) return;
    if (busy) { again = true; return; }
    if (!following() && lines().length >= most) return;
    busy = true;
    ask({ depois: panel.dataset.last }).then(function (answer) {
      const stay = following() && atEnd();
      list.append(...answer.nodes);
      if (answer.nodes.length) tell();
      if (following()) trimTop();
      else trimBottom();
      if (stay) toEnd();
      again = again || (answer.more && following());
    }).catch(function () { /* the next signal asks again */ }).finally(function () {
      busy = false;
      if (again) { again = false; grow(); }
    });
  }

  function back() {
    const top = first();
    if (!top || busy) return;
    busy = true;
    const values = { antes: top.dataset.k };
    if (panel.dataset.execution && !("grows" in panel.dataset)) values.tentativa = panel.dataset.execution;
    ask(values).then(function (answer) {
      const height = box.scrollHeight;
      list.prepend(...answer.nodes);
      box.scrollTop += box.scrollHeight - height;
      older.parentElement.hidden = !answer.more;
      if (lines().length > most) { if (follow) follow.checked = false; trimBottom(); tell(); }
    }).catch(function () { /* the button is still there */ }).finally(function () { busy = false; });
  }

  /** The end of the log again, in the level that is chosen. */
  function reload() {
    busy = true;
    return ask({ tentativa: panel.dataset.execution }).then(function (answer) {
      list.replaceChildren(...answer.nodes);
      older.parentElement.hidden = !answer.more;
      none.hidden = Boolean(first());
      tell();
      toEnd();
    }).finally(function () { busy = false; });
  }

  panel.addEventListener("click", function (event) {
    if (event.target.closest("[data-log-older]")) back();
    const level = event.target.closest(".seg [data-level]");
    if (!level || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    panel.dataset.level = level.dataset.level;
    panel.querySelectorAll(".seg [data-level]").forEach(function (one) {
      if (one === level) one.setAttribute("aria-current", "true"); else one.removeAttribute("aria-current");
    });
    reload().then(function () { history.replaceState(null, "", level.href); }, function () { location.assign(level.href); });
  });

  let height = box.clientHeight, top = box.scrollTop;
  box.addEventListener("scroll", function () {
    if (follow && box.clientHeight === height) {
      if (box.scrollTop < top - 1 && !atEnd()) follow.checked = false;
      else if (atEnd() && !follow.checked) { follow.checked = true; grow(); }
    }
    height = box.clientHeight;
    top = box.scrollTop;
  }, { passive: true });
  if (follow) follow.addEventListener("change", function () {
    if (!follow.checked) return;
    if (lines().length >= most) reload(); else toEnd();
    grow();
  });

  /* "agora" is fetched when something was said of this job; what it hears is this script's signal too. */
  document.addEventListener("turno:refresh", function (event) { if (event.target.id === "agora") grow(); }, true);
  document.addEventListener("turno:refreshed", function (event) {
    const now = event.target.closest("#agora");
    const live = panel.querySelector("[data-log-live]");
    if (now && live) live.hidden = "final" in now.dataset;
    if (now && "final" in now.dataset) grow();
  });
  toEnd();
  tell();
})();
