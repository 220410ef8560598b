"use strict";
// Lists operators, overloads or test entries; the selection is in the address after #, so that it can be shared.
document.addEventListener("DOMContentLoaded", async () => {
  const { make, rowsOf, load, number, search, details } = window.mpsmith;
  const element = (id) => document.getElementById(id);
  if (!element("explorer")) return;
  const CHUNK = 60;
  const legend = details.use(await load("legend"));
  const { dtypes, grades } = legend;
  const digits = (text) => (text ? [...text].map((digit) => (digit === "-" ? -1 : Number(digit))) : []);

  // ---- the three lists in one form; overloads and entries are loaded when they are shown

  const views = {
    operators: { verdicts: legend.verdicts, noun: "operators" },
    overloads: { verdicts: legend.verdicts, noun: "overloads" },
    entries: { verdicts: legend.caseVerdicts, noun: "test entries" },
  };
  const DETAIL = {
    operators: async (row) => details.operatorDetail(await details.operator(row.name, row.part)),
    overloads: async (row) => {
      const found = await details.operator(row.name.split(".")[0], row.part);
      return [details.overloadDetail(found.overloads.find((o) => o.name === row.name))];
    },
    entries: async (row) => details.entryDetail(await details.entry(row.name, row.part), row.name),
  };

  async function ensure(name) {
    const view = views[name];
    if (view.rows) return;
    const { texts, ...columns } = await load(name);
    view.rows = rowsOf(columns).map((row) => {
      const verdicts = digits(row.dtypeVerdicts);
      const gradesOf = digits(row.dtypeGrades);
      const broken = digits(row.dtypeBroken);
      const reason = texts[row.reason];
      return {
        ...row, reason, compiledText: row.compiledText === undefined ? "" : texts[row.compiledText], upstream: row.upstream || [],
        before: row.before === undefined ? -1 : row.before, text: reason.toLowerCase(),
        cells: dtypes.map((_, i) => (verdicts[i] >= 0 ? { verdict: verdicts[i], grade: details.gradeName(gradesOf[i] ?? -1), broken: broken[i] ?? -1 } : null)),
      };
    });
    view.compared = view.rows.some((row) => row.before >= 0);
  }

  // ---- state: what is shown, kept in the address

  const initial = () => ({ view: "operators", q: "", verdict: [], dtype: "", grade: "", only: [], sort: "", open: "" });
  let state = initial();

  function readAddress() {
    const found = new URLSearchParams(location.hash.slice(1));
    state = initial();
    for (const key of Object.keys(state)) if (found.has(key)) state[key] = found.get(key);
    state.verdict = found.get("verdict") ? found.get("verdict").split(",") : [];
    state.only = found.get("only") ? found.get("only").split(",") : [];
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
    return render();
  }

  // ---- selection

  /** The verdict by which a row is filtered: of the chosen dtype, or over all; -1 where the dtype has no evidence. */
  const verdictOf = (row, position) => (position < 0 ? row.verdict : row.cells[position] ? row.cells[position].verdict : -1);
  /** What ran when the verdict was found: of the chosen dtype where the row knows, or over all. */
  const gradeOf = (row, position) => (position >= 0 && row.cells[position]?.grade) || details.gradeName(row.grade);
  const hasChanged = (row) => row.before >= 0 && row.before !== row.verdict;
  const ONLY = {
    public: { label: "public only", holds: (row) => row.public },
    changed: { label: "changed since the last run", holds: hasChanged, needs: (view) => view.compared },
    kernel: { label: "with a kernel of ours", holds: (row) => row.kernel, needs: (_, name) => name === "operators" },
  };

  const release = (text) => text.split(".").reduce((sum, part) => sum * 1000 + (Number.parseInt(part, 10) || 0), 0);
  const byName = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
  const last = (value) => (value < 0 ? Number.POSITIVE_INFINITY : value);
  const filledFirst = (a, b) => (a === "") - (b === "") || (a < b ? -1 : a > b ? 1 : 0);
  const ORDERS = {
    verdict: (position) => (a, b) => last(verdictOf(a, position)) - last(verdictOf(b, position)),
    name: () => byName,
    cases: () => (a, b) => b.executed - a.executed,
    since: () => (a, b) => (a.since === "") - (b.since === "") || release(b.since) - release(a.since),
    kernel: () => (a, b) => filledFirst(a.kernel, b.kernel),
    upstream: () => (a, b) => b.upstream.length - a.upstream.length,
    compiled: () => (a, b) => filledFirst(a.compiled, b.compiled),
    before: () => (a, b) => hasChanged(b) - hasChanged(a),
  };
  const OLD_NAMES = { severity: "verdict" };

  function order(position) {
    const [, sign, name] = /^(-?)(.*)$/.exec(state.sort);
    const chosen = ORDERS[OLD_NAMES[name] || name];
    if (chosen) {
      const compare = chosen(position);
      return (a, b) => (sign ? -1 : 1) * compare(a.row, b.row) || byName(a.row, b.row);
    }
    // What was meant comes first; then what people call themselves; then the worst, and of that what has the most cases.
    const severity = ORDERS.verdict(position);
    return (a, b) => a.rank - b.rank || b.row.public - a.row.public || severity(a.row, b.row) || b.row.executed - a.row.executed || byName(a.row, b.row);
  }

  /** Whether a value is one of those asked for; "!missing" asks for all others. */
  const fits = (asked, value) => !asked.includes(`!${value}`) && (asked.every((name) => name.startsWith("!")) || asked.includes(value));

  /** The filters of a query that no row can have, such as "status:nosuch". */
  function unknownFilters(view, { status = [], dtype = [], evidence = [], since = [] }) {
    const known = (names) => (name) => !names.includes(name.replace(/^!/, ""));
    return [...status.filter(known(view.verdicts.map((each) => each.name))).map((name) => `status:${name}`),
      ...dtype.filter((name) => !dtypes.includes(name)).map((name) => `dtype:${name}`),
      ...evidence.filter(known(grades.map((each) => each.name))).map((name) => `evidence:${name}`),
      ...since.filter((name) => !/^\d+(\.\d+)*$/.test(name)).map((name) => `since:${name}`)];
  }

  function selected() {
    const view = views[state.view];
    const query = search.read(state.q);
    const { status = [], evidence = [], since = [] } = query.filters;
    const unknown = unknownFilters(view, query.filters);
    if (unknown.length) return { rows: [], counts: new Map(), unknown };
    const position = dtypes.indexOf(state.dtype || query.dtypes[0] || "");
    const wanted = [...state.verdict, ...status];
    const wantedGrades = [...evidence, ...(state.grade ? [state.grade] : [])];
    const only = state.only.map((name) => ONLY[name]).filter(Boolean);
    const counts = new Map();
    const found = [];
    const ranked = search.best(view.rows.map((row) => ({ row, rank: search.rank(query, row.name, row.text) })));
    for (const { row, rank } of ranked) {
      if (!only.every((each) => each.holds(row))) continue;
      if (!fits(wantedGrades, gradeOf(row, position))) continue;
      if (since.length && !since.some((text) => row.since === text || row.since?.startsWith(`${text}.`))) continue;
      const verdict = verdictOf(row, position);
      if (position >= 0 && verdict < 0) continue;
      counts.set(verdict, (counts.get(verdict) || 0) + 1);
      if (fits(wanted, view.verdicts[verdict]?.name)) found.push({ row, rank });
    }
    return { rows: found.sort(order(position)).map(({ row }) => row), counts, unknown };
  }

  // ---- drawing

  let shown = [];
  let drawn = 0;

  async function render() {
    const asked = state.view;
    await ensure(asked);
    if (asked !== state.view) return;
    const focused = document.activeElement?.dataset?.keeps;
    const view = views[asked];
    const { rows, counts, unknown } = selected();
    document.querySelectorAll("[role=tab]").forEach((tab) => {
      tab.setAttribute("aria-selected", String(tab.dataset.view === asked));
      tab.tabIndex = tab.dataset.view === asked ? 0 : -1;
    });
    element("explorer-panel").setAttribute("aria-labelledby", `tab-${asked}`);
    if (element("search").value !== state.q) element("search").value = state.q;
    element("dtype").value = state.dtype;
    element("grade").value = state.grade;
    drawChips(view, counts);
    drawHead(view);
    const of = (state.dtype ? ` with ${state.dtype}` : "") + (state.grade ? `, ${state.grade}` : "");
    const mark = legend.simulated ? " (SIMULATED)" : "";
    element("found").textContent = unknown.length ? `no row can have ${unknown.join(", ")}`
      : `${number(rows.length)} of ${number(view.rows.length)} ${view.noun}${of}${mark}${rows.length ? "" : ": nothing matches, Esc clears the filters"}`;
    shown = rows;
    drawn = 0;
    element("rows").tBodies[0].replaceChildren();
    drawMore();
    if (focused) document.querySelector(`[data-keeps="${CSS.escape(focused)}"]`)?.focus();
    const position = state.open ? shown.findIndex((row) => row.name === state.open) : -1;
    if (position >= 0) {
      while (drawn <= position) drawMore();
      await toggle(document.querySelectorAll("#rows .open")[position], shown[position], true);
    }
  }

  /** A filter that is pressed or not; `keeps` names it, so that it has the focus again after it was drawn anew. */
  function chip(key, pressed, flip, ...children) {
    return make("button", { type: "button", "aria-pressed": String(pressed), "data-keeps": key, onclick: flip }, ...children);
  }

  const flipped = (list, name) => (list.includes(name) ? list.filter((each) => each !== name) : [...list, name]);

  function drawChips(view, counts) {
    const verdicts = view.verdicts.flatMap(({ name, letter, style, meaning }, index) => {
      const count = counts.get(index) || 0;
      const pressed = state.verdict.includes(name);
      if (!pressed && !view.rows.some((row) => row.verdict === index || row.cells.some((c) => c && c.verdict === index))) return [];
      const button = chip(`verdict ${name}`, pressed, () => change({ verdict: flipped(state.verdict, name) }),
        make("span", { class: `key v-${style}`, "aria-hidden": "true" }, letter), `${name} `, make("b", {}, number(count)));
      if (meaning) button.title = meaning;
      return [button];
    });
    const only = Object.entries(ONLY).filter(([, { needs }]) => !needs || needs(view, state.view)).map(([name, { label }]) =>
      chip(`only ${name}`, state.only.includes(name), () => change({ only: flipped(state.only, name) }), label));
    element("chips").replaceChildren(...verdicts);
    element("only").replaceChildren(...only);
  }

  /** The columns beside verdict, name and dtypes; each is left out where the list or the audit has nothing for it. */
  function columnsOf(view) {
    const operators = state.view === "operators";
    return [
      ...(operators ? [["since", "since", "the first release with a kernel"], ["kernel", "our kernel", "the family in mpsmith.kernels"],
        ["upstream", "upstream", "issues in pytorch/pytorch"]] : []),
      ...(operators && legend.compiled ? [["compiled", "compiled", "the call under torch.compile"]] : []),
      ...(view.compared ? [["before", "before", "the verdict of the last run"]] : []),
      ["cases", "cases", "executed cases"], ["reason", "evidence", ""],
    ];
  }

  function drawHead(view) {
    const plain = OLD_NAMES[state.sort.replace("-", "")] || state.sort.replace("-", "");
    const head = (key, text, title, kind = key) => {
      const sorted = plain === key ? (state.sort.startsWith("-") ? "descending" : "ascending") : undefined;
      const attributes = { scope: "col", class: kind, "aria-sort": sorted };
      if (!ORDERS[key]) return make("th", attributes, text);
      const flip = () => change({ sort: state.sort === key ? `-${key}` : state.sort === `-${key}` ? "" : key });
      return make("th", attributes, make("button", { type: "button", class: "sort", "data-keeps": `sort ${key}`, title: title || undefined, onclick: flip }, text));
    };
    const cells = legend.dtypes.map((name, i) => make("th", { class: `cell${name === state.dtype ? " chosen" : ""}`, scope: "col", title: name },
      make("span", { "aria-hidden": "true" }, legend.shorts[i]), make("span", { class: "hidden" }, name)));
    const columns = columnsOf(view);
    element("columns").replaceChildren(...["verdict", "name", ...dtypes.map(() => "cell"), ...columns.map(([key]) => key)].map((kind) => make("col", { class: kind })));
    element("rows").tHead.replaceChildren(make("tr", {}, head("verdict", "verdict"), head("name", "name"), ...cells,
      ...columns.map(([key, text, title]) => head(key, text, title, key === "cases" ? "cases number" : key))));
  }

  function drawMore() {
    const view = views[state.view];
    const fragment = document.createDocumentFragment();
    for (const row of shown.slice(drawn, drawn + CHUNK)) fragment.append(drawRow(view, row));
    element("rows").tBodies[0].append(fragment);
    drawn = Math.min(drawn + CHUNK, shown.length);
    element("more").hidden = drawn >= shown.length;
  }

  const address = (reference) => (reference.startsWith("http") ? reference : `https://github.com/pytorch/pytorch/issues/${reference}`);
  const shortName = (reference) => (reference.startsWith("http") ? reference.replace(/.*\//, "#") : `#${reference}`);
  const CELLS = {
    since: (row) => make("td", { class: "since" }, row.since),
    kernel: (row) => make("td", { class: "kernel", title: row.status || undefined }, row.kernel ? make("code", {}, row.kernel) : ""),
    upstream: (row) => make("td", { class: "upstream" }, ...row.upstream.flatMap((each, i) => [i ? " " : "", make("a", { href: address(each) }, shortName(each))])),
    compiled: (row) => make("td", { class: "compiled", title: row.compiledText || undefined }, row.compiled),
    before: (row, view) => make("td", { class: "before" }, hasChanged(row) ? details.badge(view.verdicts[row.before]) : ""),
    cases: (row) => make("td", { class: "cases number" }, row.executed ? number(row.executed) : ""),
    reason: (row) => make("td", { class: "reason", title: row.reason }, row.reason),
  };

  function drawRow(view, row) {
    const { name, letter, style } = view.verdicts[row.verdict] || { name: "no case", letter: "·", style: "unreachable" };
    const cells = row.cells.map((cell, i) => {
      const verdict = cell && view.verdicts[cell.verdict];
      if (!verdict) return make("td", { class: "cell" });
      const beside = cell.broken >= 0 ? `${legend.caseVerdicts[cell.broken].name} in some cases` : "";
      return make("td", { class: "cell" },
        make("span", { class: `v-${verdict.style}${beside ? " partly" : ""}`,
          title: [`${dtypes[i]}: ${verdict.name}`, cell.grade, beside].filter(Boolean).join(", ") }, verdict.letter));
    });
    const open = make("button", { type: "button", class: "open", "aria-expanded": "false" }, row.name);
    open.addEventListener("click", () => {
      const opening = open.getAttribute("aria-expanded") !== "true";
      state.open = opening ? row.name : "";
      writeAddress();
      toggle(open, row, opening);
    });
    return make("tr", {},
      make("td", { class: "verdict" }, make("span", { class: `badge v-${style}`, title: details.gradeName(row.grade) || undefined },
        make("span", { class: "word" }, row.inPart ? `${name} in part` : name), make("span", { class: "letter", "aria-hidden": "true" }, letter))),
      make("th", { scope: "row", class: "name" }, open), ...cells, ...columnsOf(view).map(([key]) => CELLS[key](row, view)));
  }

  async function toggle(button, row, opening) {
    const line = button.closest("tr");
    button.setAttribute("aria-expanded", String(opening));
    if (line.nextElementSibling?.classList.contains("detail")) line.nextElementSibling.remove();
    if (!opening) return;
    let content;
    try {
      content = await DETAIL[state.view](row);
    } catch (error) {
      content = [make("p", { class: "notice", role: "alert" }, error.message)];
    }
    if (button.getAttribute("aria-expanded") !== "true" || line.nextElementSibling?.classList.contains("detail")) return;
    line.after(make("tr", { class: "detail" }, make("td", { colspan: columnsShown(line) }, ...content)));
  }

  /** Narrow windows show fewer columns; a cell that spans more would make new ones. */
  const columnsShown = (line) => [...line.cells].filter((cell) => cell.getClientRects().length).length;
  addEventListener("resize", () => {
    for (const detail of document.querySelectorAll("#rows tr.detail")) detail.cells[0].colSpan = columnsShown(detail.previousElementSibling);
  });

  // ---- events

  for (const name of dtypes) element("dtype").append(make("option", { value: name }, name));
  for (const { name, meaning } of grades) element("grade").append(make("option", { value: name, title: meaning }, name));
  element("search").addEventListener("input", (event) => change({ q: event.target.value, open: "" }));
  element("dtype").addEventListener("change", (event) => change({ dtype: event.target.value }));
  element("grade").addEventListener("change", (event) => change({ grade: event.target.value }));
  element("more").addEventListener("click", drawMore);
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
    if (event.key === "/" && !event.target.matches("input, select")) { event.preventDefault(); element("search").focus(); return; }
    if (event.key === "Escape") {
      change({ q: "", verdict: [], dtype: "", grade: "", only: [], open: "" });
      element("search").focus();
      return;
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !event.target.matches(".open, #search")) return;
    event.preventDefault();
    const at = [...document.querySelectorAll("#rows .open")].indexOf(event.target);
    if (at + step >= drawn) drawMore();
    (document.querySelectorAll("#rows .open")[at + step] || element("search")).focus();
  });
  if ("IntersectionObserver" in window) {
    new IntersectionObserver((seen) => { if (seen.some((entry) => entry.isIntersecting) && drawn < shown.length) drawMore(); },
      { rootMargin: "600px" }).observe(element("more"));
  }

  readAddress();
  await render();
});
