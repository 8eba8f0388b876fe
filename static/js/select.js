/* Acts over the chosen jobs: the bar with how many each applies to, and the question before; `bulk.js` follows the run. */
(function () {
  "use strict";
  var Turno = window.Turno, $ = Turno.$, bar = $("[data-bulk]");
  if (!bar) return;
  var data = JSON.parse(document.getElementById("selecao").textContent), said = data.words;
  var ACTS = Object.keys(data.acts);

  function worded(n, estimated) { return n === null ? said.many : (estimated ? "~" : "") + number(n); }
  function number(n) { return n.toLocaleString(document.documentElement.lang); }
  function total() {
    var count = $("#abas [data-total]");
    return count ? count.textContent.trim() : "";
  }

  function paint() {
    var selection = Turno.selection, whole = selection.whole, n = selection.size;
    bar.hidden = !whole && n === 0;
    document.documentElement.toggleAttribute("data-selecting", !bar.hidden);
    var text = whole ? Turno.say(said.whole, { n: whole.words }).replace(/\s+/g, " ") : Turno.say(said.selected, { n: n });
    var line = $("[data-bulk-n]", bar);
    if (line.textContent !== text) line.textContent = text;
    var offer = $("[data-whole]", bar);
    offer.hidden = Boolean(whole);
    offer.replaceChildren();
    [["long", said.select_before], ["only-small", said.select_short]].forEach(function (part) {
      var span = document.createElement("span");
      span.className = part[0];
      span.textContent = part[1] + " ";
      offer.append(span);
    });
    var after = document.createElement("span");
    after.className = "long";
    after.textContent = " " + said.select_after;
    offer.append(total(), after);
    ACTS.forEach(function (act) {
      var button = $("[data-do=" + act + "]", bar);
      var count = whole ? whole.acts[act].count : selection.ids(act).length;
      $("b", button).textContent = whole ? whole.acts[act].words : number(count);
      button.disabled = count === 0;
    });
  }
  document.addEventListener("turno:selected", paint);
  document.addEventListener("turno:refreshed", function (event) { if (event.target.id === "abas") paint(); });

  /* All that match: the server counts each act once, at one instant, and that is what will be done. */
  function chooseAll(button) {
    button.setAttribute("aria-busy", "true");
    Promise.all(ACTS.map(function (act) {
      var query = new URLSearchParams({ act: act, target: "jobs", filter: bar.dataset.filter });
      return Turno.bulk.get(bar.dataset.preview + "?" + query);
    })).then(function (found) {
      var acts = {}, states = {}, estimated = false;
      found.forEach(function (one, place) {
        acts[ACTS[place]] = Object.assign({}, one, { words: worded(one.count, one.estimated) });
        Object.assign(states, one.by_state); /* the three acts together apply to every state */
        estimated = estimated || one.estimated;
      });
      var parts = Object.values(states), known = parts.every(function (part) { return part !== null; });
      var sum = parts.reduce(function (all, part) { return all + part; }, 0);
      Turno.selection.whole = { words: known ? worded(sum, estimated) : "", acts: acts };
    }).catch(Turno.refused).finally(function () { button.removeAttribute("aria-busy"); });
  }

  function lines(states) {
    return Array.from(states).map(function (entry) {
      var state = data.states[entry[0]] || { word: entry[0], mark: "queued" };
      return { mark: state.mark, text: state.word + ": " + number(entry[1]) };
    });
  }

  /* The rules of the design: how large or how final an act is decides whether it is asked, and how. */
  function question(name, count) {
    var act = data.acts[name];
    if (count <= act.ask_above) return null;
    return {
      title: Turno.say(act.title, { n: count }), text: Turno.say(act.text, { n: count }), list: lines(Turno.selection.states(name)),
      verb: Turno.say(act.verb, { n: count }), typed: count > act.type_above ? String(count) : "", reason: act.reason
    };
  }

  /* All that match: the server has put the question when it counted them. */
  function wide(found) {
    if (!found.ask) return null;
    var all = bar.dataset.spoken ? said.all_of : said.all_jobs;
    return Object.assign({}, found, {
      text: Turno.say(all, { filter: bar.dataset.spoken }) + " " + found.text,
      list: found.list.filter(function (line) { return line.mark; })
    });
  }

  function act(name) {
    var whole = Turno.selection.whole, found = whole && whole.acts[name];
    var ids = whole ? [] : Turno.selection.ids(name);
    if (!whole && !ids.length) return;
    var asked = whole ? wide(found) : question(name, ids.length);
    (asked ? Turno.ask(asked) : Promise.resolve({})).then(function (yes) {
      if (yes === null) return;
      var body = { act: name, target: "jobs" };
      if (yes.reason) body.reason = yes.reason;
      if (whole) Object.assign(body, { filter: bar.dataset.filter, before: found.before, id: found.id });
      else body.ids = ids.join(",");
      Turno.selection.clear();
      $("#lista-t").focus();
      Turno.post(bar.dataset.start, body).then(function (answer) { return Turno.bulk.follow(answer.run); }).catch(Turno.refused);
    });
  }

  document.addEventListener("click", function (event) {
    var offer = event.target.closest("[data-whole]");
    if (offer) return chooseAll(offer);
    var button = event.target.closest("[data-do]");
    if (button && bar.contains(button)) act(button.dataset.do);
  });
  paint();
})();
