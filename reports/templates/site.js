"use strict";
// What all pages share: the theme, data that come as scripts (a page opened from disk may load nothing else), elements.
window.mpsmith = (() => {
  const data = new Map();
  const waiting = new Map();
  /** The path from this page's folder to the site's. */
  const base = document.documentElement.dataset.root || "";

  /** Called by the data files: hands their data over under a name. */
  function give(name, value) {
    data.set(name, value);
    waiting.get(name)?.resolve(value);
  }

  /** The data of this name; loaded from data/NAME.js where the page does not hold them. */
  function load(name) {
    if (data.has(name)) return Promise.resolve(data.get(name));
    if (!waiting.has(name)) {
      const entry = {};
      entry.promise = new Promise((resolve, reject) => Object.assign(entry, { resolve, reject }));
      waiting.set(name, entry);
      const script = document.createElement("script");
      script.src = `${base}data/${name}.js`;
      script.addEventListener("error", () => entry.reject(new Error(`data/${name}.js is missing beside this page`)));
      document.head.append(script);
    }
    return waiting.get(name).promise;
  }

  function make(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === false || value === undefined) continue;
      if (key === "class") node.className = value;
      else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value);
    }
    node.append(...children);
    return node;
  }

  /** The rows of a table that is given as columns by name. */
  function rowsOf(columns) {
    const names = Object.keys(columns);
    return columns[names[0]].map((_, i) => Object.fromEntries(names.map((name) => [name, columns[name][i]])));
  }

  /** Code with a button that copies it. */
  function copyable(text) {
    const button = make("button", { type: "button", class: "copy", "aria-label": `copy ${text}`, onclick: () => {
      if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => { button.textContent = "copied"; });
    } }, "copy");
    return [make("code", {}, text), " ", button];
  }

  const number = (value) => value.toLocaleString("en");

  // ---- theme: the system's, until the user chooses; the choice applies to all pages

  const root = document.documentElement;
  const systemDark = matchMedia("(prefers-color-scheme: dark)");

  function remembered() {
    const asked = new URLSearchParams(location.hash.slice(1)).get("theme");
    if (asked) return asked;
    try { return localStorage.getItem("mpsmith-theme") || ""; } catch { return ""; }
  }

  function setTheme(theme) {
    root.classList.toggle("dark", theme === "dark");
    root.classList.toggle("light", theme === "light");
  }

  const isDark = () => root.classList.contains("dark") || (!root.classList.contains("light") && systemDark.matches);
  setTheme(remembered());

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    if (!button) return;
    const label = () => { button.textContent = isDark() ? "Light theme" : "Dark theme"; };
    label();
    systemDark.addEventListener("change", label);
    button.addEventListener("click", () => {
      const chosen = isDark() ? "light" : "dark";
      setTheme(chosen);
      label();
      try { localStorage.setItem("mpsmith-theme", chosen); } catch { /* the choice then holds for this page */ }
    });
  });

  return { base, give, load, make, rowsOf, copyable, number };
})();
