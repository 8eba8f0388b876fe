/* The frame's behaviour: words, dialogs, theme, toasts. `Turno` is the one name that the scripts share. */
(function () {
  "use strict";
  var root = document.documentElement;
  var Turno = window.Turno = window.Turno || {};

  Turno.$ = function (selector, within) { return (within || document).querySelector(selector); };
  Turno.$$ = function (selector, within) { return Array.from((within || document).querySelectorAll(selector)); };
  Turno.store = {
    get: function (key) { try { return localStorage.getItem(key); } catch (error) { return null; } },
    set: function (key, value) { try { localStorage.setItem(key, value); } catch (error) { /* lasts for this page */ } }
  };
  var data = document.getElementById("turno-words");
  Turno.words = data ? JSON.parse(data.textContent) : {};

  /* A sentence with its {names} filled in; a list of words is [one, many], chosen by `n`. */
  Turno.say = function (words, values) {
    if (Array.isArray(words)) words = words[new Intl.PluralRules(root.lang).select(Number(values.n)) === "one" ? 0 : 1];
    return String(words).replace(/\{(\w+)\}/g, function (all, name) {
      var value = (values || {})[name];
      if (value === undefined) return all;
      return typeof value === "number" ? value.toLocaleString(root.lang) : value;
    });
  };
  Turno.csrf = function () {
    var meta = Turno.$("meta[name=csrf-token]");
    return meta ? meta.content : "";
  };

  /* Dialogs: native, so the focus goes back to whoever opened them. */
  document.addEventListener("click", function (event) {
    var opener = event.target.closest("[data-open]");
    if (opener) {
      var open = Turno.$("dialog[open]");
      if (open) open.close();
      var dialog = document.getElementById(opener.dataset.open);
      if (dialog) dialog.showModal();
      return;
    }
    if (event.target.closest("[data-close]")) event.target.closest("dialog").close();
    else if (event.target.nodeName === "DIALOG") event.target.close(); /* the backdrop */
  });
  /* What was opened as a menu closes when the pointer or the focus goes elsewhere. */
  document.addEventListener("click", function (event) {
    Turno.$$("details[data-menu][open]").forEach(function (menu) { if (!menu.contains(event.target)) menu.open = false; });
  });
  document.addEventListener("keydown", function (event) {
    if (event.key !== "Escape") return;
    Turno.$$("details[data-menu][open]").forEach(function (menu) {
      menu.open = false;
      if (menu.contains(document.activeElement)) Turno.$("summary", menu).focus();
    });
  });

  /* Theme: the system's, light, dark. */
  function showTheme(name) {
    Turno.$$("[data-theme-set]").forEach(function (button) {
      button.setAttribute("aria-pressed", String(button.dataset.themeSet === name));
    });
  }
  Turno.setTheme = function (name) {
    if (name === "auto") delete root.dataset.theme; else root.dataset.theme = name;
    Turno.store.set("turno.tema", name);
    showTheme(name);
  };
  Turno.nextTheme = function () {
    var now = root.dataset.theme || "auto";
    var next = { auto: "light", light: "dark", dark: "auto" }[now];
    Turno.setTheme(next);
    Turno.toast(Turno.words["theme_" + next]);
  };
  document.addEventListener("click", function (event) {
    if (event.target.closest("[data-theme-toggle]")) Turno.nextTheme();
    var chosen = event.target.closest("[data-theme-set]");
    if (chosen) Turno.setTheme(chosen.dataset.themeSet);
  });
  showTheme(root.dataset.theme || "auto");

  /* Toasts: what went well leaves after 5 s unless it is looked at; an error stays. */
  function icon(kind, name) {
    var svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    var use = document.createElementNS("http://www.w3.org/2000/svg", "use");
    svg.setAttribute("class", kind === "mark" ? "mark mark--" + name : "i");
    svg.setAttribute("aria-hidden", "true");
    use.setAttribute("href", (kind === "mark" ? "#m-" : "#i-") + name);
    svg.append(use);
    return svg;
  }
  Turno.icon = icon;

  function leaveLater(toast) {
    var timer = 0, looks = false;
    function start() { timer = setTimeout(function () { if (!looks) toast.remove(); }, 5000); }
    ["pointerenter", "focusin"].forEach(function (name) { toast.addEventListener(name, function () { looks = true; clearTimeout(timer); }); });
    ["pointerleave", "focusout"].forEach(function (name) { toast.addEventListener(name, function () { looks = false; start(); }); });
    start();
  }

  /* toast(title, {detail, error, link: {href, text}, progress: true, onStop}) answers {update, end, element}. */
  Turno.toast = function (title, options) {
    options = options || {};
    var toast = document.createElement("div"), text = document.createElement("p"), strong = document.createElement("b");
    toast.className = "toast";
    toast.setAttribute("role", options.error ? "alert" : "status");
    strong.textContent = title;
    text.append(strong);
    var detail = document.createElement("span");
    detail.textContent = options.detail ? " " + options.detail : "";
    text.append(detail);
    if (options.link) {
      var link = document.createElement("a");
      link.href = options.link.href;
      link.textContent = options.link.text;
      text.append(" ", link);
    }
    var close = document.createElement("button");
    close.className = "ib";
    close.type = "button";
    close.setAttribute("aria-label", options.onStop ? Turno.words.stop : Turno.words.close);
    close.append(icon("i", "x"));
    close.addEventListener("click", function () { if (options.onStop) options.onStop(); else toast.remove(); });
    toast.append(icon("mark", options.error ? "failure" : options.progress ? "running" : "success"), text, close);
    var bar = null;
    if (options.progress) {
      bar = document.createElement("progress");
      bar.className = "progress";
      bar.max = 100;
      bar.setAttribute("aria-label", title);
      toast.append(bar);
    }
    document.getElementById("avisos").append(toast);
    if (!options.error && !options.progress) leaveLater(toast);
    return {
      element: toast,
      update: function (words, percent) {
        detail.textContent = " " + words;
        if (bar && percent !== null && percent !== undefined) bar.value = percent;
      },
      end: function () { toast.remove(); }
    };
  };

  /* Zones for the preferences: the browser knows their names. */
  var zones = document.getElementById("zonas");
  if (zones && Intl.supportedValuesOf) {
    Turno.$("[data-zone]").addEventListener("focus", function () {
      if (zones.children.length) return;
      ["UTC"].concat(Intl.supportedValuesOf("timeZone")).forEach(function (name) {
        var option = document.createElement("option");
        option.value = name;
        zones.append(option);
      });
    });
  }
})();
