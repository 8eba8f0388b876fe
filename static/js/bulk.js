/* Acts over many: the server says what there is to ask, does the work in batches, and tells how far it is. */
(function () {
  "use strict";
  const T = (window.Turno = window.Turno || {});
  const LOOK = [200, 300, 500, 700, 1000]; // ms between two questions
  const FAILURES = 20;
  const START = "/painel/lotes", PREVIEW = "/painel/lotes/previa";

  function get(url) {
    return fetch(url, { credentials: "same-origin", redirect: "manual", headers: { "Accept": "application/json" } }).then(function (answer) {
      if (answer.type === "opaqueredirect") throw { title: T.words.failed, detail: T.words.not_signed_in };
      return answer.json().catch(() => ({})).then(function (said) {
        if (!answer.ok) throw { title: said.title || T.words.failed, detail: said.detail || "", status: answer.status };
        return said;
      });
    }, function () { throw { title: T.words.failed, detail: T.words.no_answer }; });
  }

  function fields(asked) {
    const body = { act: asked.act, target: asked.target || "jobs" };
    if (asked.ids) body.ids = Array.from(asked.ids).join(",");
    else body.filter = asked.filter || "";
    return body;
  }

  /** The end: what was done, and what it did not apply to. */
  function tell(run) {
    const failed = run.state === "failed";
    T.toast(run.title, { detail: run.detail, error: failed });
    if (T.regions) T.regions.refreshAll();
    document.dispatchEvent(new CustomEvent("turno:bulk", { detail: run }));
    return run;
  }

  /** Shows how far a run is until it ends; answers a promise of the ended run, which is rejected when nobody can say. */
  function follow(run) {
    if (run.ended) return Promise.resolve(tell(run));
    let looks = 0, failures = 0;
    const toast = T.toast(run.title, {
      progress: true,
      onStop: function () {
        toast.update(T.words.stopping, null);
        T.post(run.stop, {}).catch(T.refused);
      }
    });
    toast.update(run.detail, run.percent);
    return new Promise(function (resolve, reject) {
      function again() { setTimeout(look, LOOK[Math.min(looks, LOOK.length - 1)]); looks += 1; }
      function look() {
        get(run.url).then(function (said) {
          failures = 0;
          run = said.run;
          if (!run.ended) { toast.update(run.detail, run.percent); again(); return; }
          toast.end();
          resolve(tell(run));
        }, function (error) {
          failures += 1;
          if (error.status === undefined && failures < FAILURES) { again(); return; } // the work goes on without us
          toast.end();
          reject(error);
        });
      }
      again();
    });
  }

  /** Asks where there is something to ask, begins, follows: a promise of the ended run, of null when the person said no. */
  function act(asked) {
    const body = fields(asked);
    const looked = asked.quick
      ? Promise.resolve({ ask: false })
      : get(PREVIEW + "?" + new URLSearchParams(body));
    return looked.then(function (seen) {
      if (seen.none) { T.toast(seen.none, {}); return null; }
      if (seen.id) { body.id = seen.id; body.before = seen.before; }
      return (seen.ask ? T.ask(seen) : Promise.resolve({})).then(function (yes) {
        if (yes === null) return null;
        if (yes.reason) body.reason = yes.reason;
        return T.post(START, body).then((said) => follow(said.run));
      });
    }).catch(function (error) { T.refused(error); return null; });
  }

  document.addEventListener("submit", function (event) {
    const form = event.target.closest("form[data-lote]");
    if (!form) return;
    event.preventDefault();
    const button = event.submitter || form.querySelector("button"), data = new FormData(form, event.submitter);
    if (button.getAttribute("aria-busy") === "true" || button.getAttribute("aria-disabled") === "true") return;
    button.setAttribute("aria-busy", "true");
    act({
      act: data.get("act"), target: data.get("target"), filter: data.get("filter"),
      ids: data.has("ids") ? data.getAll("ids") : null, quick: form.dataset.quick !== undefined
    }).finally(function () { button.removeAttribute("aria-busy"); });
  });

  T.bulk = { act: act, follow: follow, get: get };
})();
