"use strict";
// Lists operators, overloads or test entries; the choice stands in the address after #, so that it can be shared.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const CHUNK = 120;
  const element = (id) => document.getElementById(id);

  /** The rows of a table that is given as columns by name. */
  const rowsOf = (columns) => {
    const names = Object.keys(columns);
    return columns[names[0]].map((_, i) => Object.fromEntries(names.map((name) => [name, columns[name][i]])));
  };
  const dtypes = data.dtypes.name;
  const verdicts = rowsOf(data.verdicts);
  const caseVerdicts = rowsOf(data.caseVerdicts);
  const grades = rowsOf(data.grades);
  const gradeName = (position) => (position >= 0 ? grades[position].name : "");
  const cases = rowsOf(data.cases).map((c) => ({
    ...c, verdict: caseVerdicts[c.verdict], message: data.texts[c.message], inputs: data.texts[c.inputs], rule: data.texts[c.rule],
  }));

  /** A cell for each dtype, or null where there is no evidence: its verdict, counts by case verdict, and the case to show. */
  const cellsOf = (row) => dtypes.map((_, i) => {
    const verdict = row.dtypeVerdicts.length ? row.dtypeVerdicts[i] : -1;
    const counts = row.dtypeCounts && (row.dtypeCounts.length ? row.dtypeCounts[i] : -1);
    if (counts ? counts === -1 : verdict < 0) return null;
    const breakages = (row.dtypeBreakages && row.dtypeBreakages[i]) || [];
    return {
      verdict, counts, grade: gradeName(row.dtypeGrades?.length ? row.dtypeGrades[i] : -1), shown: row.dtypeCases?.[i] >= 0 ? cases[row.dtypeCases[i]] : null,
      broken: row.dtypeBroken?.[i] >= 0 ? cases[row.dtypeBroken[i]] : null,
      beside: breakages === -1 ? [] : breakages.map((position) => caseVerdicts[position].name),
    };
  });

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

  // ---- rows: the three lists in one form

  const overloads = rowsOf(data.overloads).map((o) => ({
    ...o, cells: cellsOf(o), reason: data.texts[o.reason], surface: data.texts[o.surface], rule: data.texts[o.rule],
    entries: o.entries.map((i) => data.entries.name[i]),
  }));
  const byOperator = new Map();
  const byEntry = new Map();
  for (const overload of overloads) {
    if (!byOperator.has(overload.operator)) byOperator.set(overload.operator, []);
    byOperator.get(overload.operator).push(overload);
    for (const entry of overload.entries) {
      if (!byEntry.has(entry)) byEntry.set(entry, []);
      byEntry.get(entry).push(overload);
    }
  }
  const searchable = (...texts) => texts.join("\n").toLowerCase();
  const worstOf = (list) => list.reduce((worst, o) => (o.verdict < worst.verdict ? o : worst));
  const views = {
    operators: {
      verdicts, noun: "operators",
      rows: rowsOf(data.operators).map((row) => {
        const o = { ...row, compiledText: data.texts[row.compiledText] };
        const own = byOperator.get(o.name) || [];
        const entries = [...new Set(own.flatMap((overload) => overload.entries))];
        return {
          ...o, cells: cellsOf(o), reason: own.length ? (own.find((overload) => overload.verdict === o.verdict) || worstOf(own)).reason : "",
          text: searchable(o.name, o.compiledText, ...own.map((overload) => overload.name), ...entries), detail: () => operatorDetail(own, o),
        };
      }),
    },
    overloads: {
      verdicts, noun: "overloads",
      rows: overloads.map((o) => ({
        ...o, text: searchable(o.name, o.reason, ...o.entries), detail: () => [overloadDetail(o)],
      })),
    },
    entries: {
      verdicts: caseVerdicts, noun: "test entries",
      rows: rowsOf(data.entries).map((entry) => {
        const cells = cellsOf(entry);
        const reason = entryReason(cells);
        return { ...entry, cells, reason, text: searchable(entry.name, reason),
          detail: () => entryDetail(entry, cells) };
      }),
    },
  };

  function entryReason(cells) {
    const present = cells.filter((cell) => cell?.shown);
    return present.length ? present.reduce((a, b) => (b.verdict < a.verdict ? b : a)).shown.message : "";
  }

  // ---- state: what is shown, kept in the address

  const initial = () => ({ view: "operators", q: "", verdict: [], dtype: "", grade: "", sort: "severity", open: "", theme: "" });
  let state = initial();

  function readAddress() {
    const found = new URLSearchParams(location.hash.slice(1));
    state = initial();
    for (const key of Object.keys(state)) if (found.has(key)) state[key] = found.get(key);
    state.verdict = found.get("verdict") ? found.get("verdict").split(",") : [];
    if (!views[state.view]) state.view = "operators";
    if (!dtypes.includes(state.dtype)) state.dtype = "";
    if (!grades.some((grade) => grade.name === state.grade)) state.grade = "";
  }

  function writeAddress() {
    const kept = new URLSearchParams();
    const plain = initial();
    for (const [key, value] of Object.entries(state)) {
      const text = Array.isArray(value) ? value.join(",") : value;
      if (text && text !== plain[key]) kept.set(key, text);
    }
    const hash = kept.toString();
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }

  function change(changes) {
    Object.assign(state, changes);
    writeAddress();
    render();
  }

  // ---- selection

  /** The verdict by which a row is filtered: of the chosen dtype, or over all; -1 where the dtype has no evidence. */
  function verdictOf(row, position) {
    if (position < 0) return row.verdict;
    return row.cells[position] ? row.cells[position].verdict : -1;
  }

  /** What ran when the verdict was found: of the chosen dtype where the row knows, or over all. */
  function gradeOf(row, position) {
    return (position >= 0 && row.cells[position]?.grade) || gradeName(row.grade);
  }

  function selected() {
    const view = views[state.view];
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const position = dtypes.indexOf(state.dtype);
    const wanted = new Set(state.verdict.map((name) => view.verdicts.findIndex((v) => v.name === name)));
    const counts = new Map();
    const rows = [];
    for (const row of view.rows) {
      if (!words.every((word) => row.text.includes(word))) continue;
      if (state.grade && gradeOf(row, position) !== state.grade) continue;
      const verdict = verdictOf(row, position);
      if (position >= 0 && verdict < 0) continue;
      counts.set(verdict, (counts.get(verdict) || 0) + 1);
      if (!wanted.size || wanted.has(verdict)) rows.push(row);
    }
    const byName = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
    const rank = (row) => (verdictOf(row, position) < 0 ? Infinity : verdictOf(row, position));
    if (state.sort === "name") rows.sort(byName);
    else if (state.sort === "cases") rows.sort((a, b) => b.executed - a.executed || byName(a, b));
    else rows.sort((a, b) => (rank(a) === rank(b) ? byName(a, b) : rank(a) - rank(b)));
    return { rows, counts };
  }

  // ---- drawing

  let shown = [];
  let drawn = 0;

  function render() {
    const view = views[state.view];
    const { rows, counts } = selected();
    document.querySelectorAll("[role=tab]").forEach((tab) => {
      tab.setAttribute("aria-selected", String(tab.dataset.view === state.view));
      tab.tabIndex = tab.dataset.view === state.view ? 0 : -1;
    });
    if (element("search").value !== state.q) element("search").value = state.q;
    element("dtype").value = state.dtype;
    element("grade").value = state.grade;
    element("sort").value = state.sort;
    drawTheme();
    drawChips(view, counts);
    drawHead();
    const of = (state.dtype ? ` with ${state.dtype}` : "") + (state.grade ? `, ${state.grade}` : "");
    const mark = data.simulated ? " (SIMULATED)" : "";
    element("found").textContent =
      `${rows.length.toLocaleString("en")} of ${view.rows.length.toLocaleString("en")} ${view.noun}${of}${mark}${rows.length ? "" : ": nothing matches, Esc clears the filters"}`;
    shown = rows;
    drawn = 0;
    document.querySelector("#rows tbody").replaceChildren();
    drawMore();
    const position = state.open ? shown.findIndex((row) => row.name === state.open) : -1;
    if (position >= 0) {
      while (drawn <= position) drawMore();
      toggle(document.querySelectorAll("#rows .open")[position], shown[position], true);
    }
  }

  function drawChips(view, counts) {
    element("chips").replaceChildren(...view.verdicts.flatMap(({ name, letter, style, meaning }, index) => {
      const count = counts.get(index) || 0;
      const pressed = state.verdict.includes(name);
      if (!pressed && !view.rows.some((row) => row.verdict === index || row.cells.some((c) => c && c.verdict === index))) return [];
      const flip = () => change({ verdict: pressed ? state.verdict.filter((v) => v !== name) : [...state.verdict, name] });
      return [make("button", { type: "button", "aria-pressed": String(pressed), title: meaning, onclick: flip,
        "data-empty": count ? undefined : "" }, make("span", { class: `key v-${style}` }, letter), `${name} `,
        make("b", {}, count.toLocaleString("en")))];
    }));
  }

  /** Whether the list has a column for torch.compile: it is of operators, and an audit that compiled them is known. */
  const showsCompiled = () => data.compiled && state.view === "operators";

  function drawHead() {
    const heads = rowsOf(data.dtypes).map(({ name, short }) =>
      make("th", { class: `cell${name === state.dtype ? " chosen" : ""}`, scope: "col", title: name }, short));
    const column = (name) => make("col", { class: name });
    const compiled = showsCompiled();
    element("columns").replaceChildren(column("verdict"), column("name"), ...dtypes.map(() => column("cell")),
      ...(compiled ? [column("compiled")] : []), column("cases"), column("reason"));
    document.querySelector("#rows thead").replaceChildren(make("tr", {}, make("th", { scope: "col" }, "verdict"),
      make("th", { scope: "col" }, "name"), ...heads,
      ...(compiled ? [make("th", { class: "compiled", scope: "col", title: "the call under torch.compile" }, "compiled")] : []), make("th", { class: "number", scope: "col" }, "cases"),
      make("th", { class: "reason", scope: "col" }, "evidence")));
  }

  function drawMore() {
    const view = views[state.view];
    const body = document.querySelector("#rows tbody");
    const fragment = document.createDocumentFragment();
    for (const row of shown.slice(drawn, drawn + CHUNK)) fragment.append(drawRow(view, row));
    body.append(fragment);
    drawn = Math.min(drawn + CHUNK, shown.length);
    element("more").hidden = drawn >= shown.length;
  }

  function drawRow(view, row) {
    const { name, letter, style } = view.verdicts[row.verdict] || { name: "no case", letter: "·", style: "unreachable" };
    const cells = row.cells.map((cell, i) => {
      const verdict = cell && view.verdicts[cell.verdict];
      if (!verdict) return make("td", { class: "cell" }, make("span"));
      return make("td", { class: "cell" },
        make("span", { class: `v-${verdict.style}${cell.beside.length ? " partly" : ""}`,
          title: [`${dtypes[i]}: ${verdict.name}`, ...(cell.grade ? [cell.grade] : []), ...cell.beside.map((name) => `${name} in some cases`)].join(", ") }, verdict.letter));
    });
    const open = make("button", { type: "button", class: "open", "aria-expanded": "false", title: row.name }, row.name);
    open.addEventListener("click", () => {
      const opening = open.getAttribute("aria-expanded") !== "true";
      toggle(open, row, opening);
      state.open = opening ? row.name : "";
      writeAddress();
    });
    return make("tr", {}, make("td", {}, make("span", { class: `badge v-${style}`, "data-letter": letter, title: gradeName(row.grade) || undefined }, name)),
      make("td", {}, open), ...cells,
      ...(showsCompiled() ? [make("td", { class: "compiled", title: row.compiledText || undefined }, row.compiled)] : []),
      make("td", { class: "number" }, row.executed ? row.executed.toLocaleString("en") : ""),
      make("td", { class: "reason", title: row.reason }, row.reason));
  }

  function toggle(button, row, opening) {
    const line = button.closest("tr");
    button.setAttribute("aria-expanded", String(opening));
    if (line.nextElementSibling?.classList.contains("detail")) line.nextElementSibling.remove();
    if (opening) line.after(make("tr", { class: "detail" }, make("td", { colspan: dtypes.length + (showsCompiled() ? 5 : 4) }, ...row.detail())));
  }

  // ---- details

  function operatorDetail(own, registered) {
    const { status, kernel, upstream, compiledText } = registered;
    const known = status
      ? [make("p", { class: "facts" }, `Registry: ${[status, kernel && `kernel ${kernel}`, upstream].filter(Boolean).join(", ")}`)]
      : [];
    const compiled = compiledText ? [make("p", { class: "facts" }, compiledText)] : [];
    return [...known, ...compiled, ...[...own].sort((a, b) => a.verdict - b.verdict).map(overloadDetail)];
  }

  function overloadDetail(o) {
    const { name: verdict, style } = verdicts[o.verdict];
    const facts = [o.grade >= 0 && `evidence: ${gradeName(o.grade)}`, `surface: ${o.surface}`, o.autogenerated && "autogenerated", o.formula && "has an autograd formula",
      o.rule && `rule: ${o.rule}`].filter(Boolean).join(" · ");
    const called = o.entries.length
      ? [make("p", { class: "facts" }, `called in ${o.entries.length.toLocaleString("en")} test ${o.entries.length === 1 ? "entry" : "entries"}: `, ...links(o.entries, "entries", 12))]
      : [];
    return make("section", {}, make("h3", {}, make("span", { class: `badge v-${style}` }, verdict), " ", make("code", {}, o.name)),
      o.schema ? make("p", { class: "schema" }, o.name + o.schema) : "", make("p", {}, o.reason),
      make("p", { class: "facts" }, facts), ...called, ...evidence(o.cells, verdicts));
  }

  function entryDetail({ name, sources, pairs, grade }, cells) {
    const called = (byEntry.get(name) || []).map((o) => o.name);
    const seen = pairs ? `; at ${pairs} possible pairs of levels` : "";
    return [make("p", { class: "facts" }, `cases from: ${sources.join(", ")}${seen}${grade >= 0 ? ` · evidence: ${gradeName(grade)}` : ""}`), ...evidence(cells, caseVerdicts),
      ...(called.length ? [make("p", { class: "facts" }, "overloads: ", ...links(called, "overloads", 40))] : [])];
  }

  function links(names, view, limit) {
    const shownNames = names.slice(0, limit).flatMap((name, i) => [i ? ", " : "", make("button", { type: "button", class: "link",
      onclick: () => { change({ ...initial(), theme: state.theme, view, q: name, open: name }); element("explorer").scrollIntoView(); } }, name)]);
    return names.length > limit ? [...shownNames, ` and ${names.length - limit} more`] : shownNames;
  }

  /** The counts by dtype, then the cases that decided: what went wrong, and the command that runs each again. */
  function evidence(cells, names) {
    const present = cells.map((cell, i) => [dtypes[i], cell]).filter(([, cell]) => cell);
    if (!present.length) return [];
    const kinds = [...new Set(present.flatMap(([, cell]) => Object.keys(cell.counts).map(Number)))].sort((a, b) => a - b);
    const count = (cell, kind) => (cell.counts[kind] || "").toLocaleString("en");
    const mark = data.simulated ? [make("caption", {}, make("span", { class: "tag" }, "SIMULATED"))] : [];
    const table = make("table", {}, ...mark, make("thead", {}, make("tr", {}, make("th", {}, "dtype"), make("th", {}, "verdict"), make("th", {}, "evidence"),
      ...kinds.map((kind) => make("th", { class: "number" }, caseVerdicts[kind].name)))),
      make("tbody", {}, ...present.map(([dtype, cell]) => make("tr", {}, make("td", {}, dtype),
        make("td", {}, cell.verdict < 0 ? "no case" : names[cell.verdict].name), make("td", {}, cell.grade), ...kinds.map((kind) => make("td", { class: "number" }, count(cell, kind)))))));
    const seen = new Set();
    const different = present.flatMap(([, cell]) => [cell.broken, cell.shown]).filter((shown) => shown && !seen.has(shown.message) && seen.add(shown.message));
    return [table, ...different.slice(0, 4).map(caseDetail)];
  }

  function caseDetail({ label, mode, verdict, grade, stage, message, inputs, error, rule }) {
    const command = `mpsmith replay '${label}'`;
    const copy = make("button", { type: "button", class: "copy", onclick: () => {
      if (navigator.clipboard) navigator.clipboard.writeText(command).then(() => { copy.textContent = "copied"; });
    } }, "copy");
    const facts = [verdict.name, gradeName(grade), `in the ${stage}`, `${mode} mode`,
      error === null ? "" : `${error.toPrecision(3)} × the tolerance`].filter(Boolean).join(", ");
    return make("div", { class: "case" }, make("p", {}, make("code", {}, label), ` ${facts}`),
      message ? make("p", { class: "message" }, message) : "",
      make("p", { class: "facts" }, rule ? `explained by the rule ${rule}` : "UNEXPLAINED: no rule says why"),
      inputs ? make("p", { class: "facts" }, "inputs: ", make("code", {}, inputs)) : "",
      make("p", {}, make("code", {}, command), copy));
  }

  // ---- theme

  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (state.theme ? state.theme === "dark" : systemDark.matches);
  const drawTheme = () => document.documentElement.classList.toggle("dark", isDark());

  // ---- events

  for (const name of dtypes) element("dtype").append(make("option", { value: name }, name));
  element("search").addEventListener("input", (event) => change({ q: event.target.value, open: "" }));
  element("dtype").addEventListener("change", (event) => change({ dtype: event.target.value }));
  for (const { name, meaning } of grades) element("grade").append(make("option", { value: name, title: meaning }, name));
  element("grade").addEventListener("change", (event) => change({ grade: event.target.value }));
  element("sort").addEventListener("change", (event) => change({ sort: event.target.value }));
  element("theme").addEventListener("click", () => change({ theme: isDark() ? "light" : "dark" }));
  element("more").addEventListener("click", drawMore);
  systemDark.addEventListener("change", drawTheme);
  addEventListener("hashchange", () => { readAddress(); render(); });
  const tabs = [...document.querySelectorAll("[role=tab]")];
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => change({ view: tab.dataset.view, verdict: [], open: "" }));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = tabs[(i + step + tabs.length) % tabs.length];
      next.focus();
      next.click();
    });
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input, select");
    if (event.key === "/" && !typing) { event.preventDefault(); element("search").focus(); return; }
    if (event.key === "Escape") {
      if (event.target === element("search")) event.target.blur();
      change({ q: "", verdict: [], dtype: "", grade: "", open: "" });
      return;
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !event.target.matches(".open, #search")) return;
    event.preventDefault();
    const buttons = [...document.querySelectorAll("#rows .open")];
    const at = buttons.indexOf(event.target);
    if (at + step >= buttons.length) drawMore();
    const target = document.querySelectorAll("#rows .open")[at + step];
    (target || element("search")).focus();
  });
  if ("IntersectionObserver" in window) {
    new IntersectionObserver((seen) => { if (seen.some((entry) => entry.isIntersecting) && drawn < shown.length) drawMore(); },
      { rootMargin: "600px" }).observe(element("more"));
  }

  readAddress();
  render();
})();
