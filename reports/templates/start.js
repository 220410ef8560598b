"use strict";
// The first page: search an operator and show three answers. The query is in the address after #.
document.addEventListener("DOMContentLoaded", async () => {
  const { make, rowsOf, load, number, search, details } = window.mpsmith;
  const field = document.getElementById("ask");
  if (!field) return;
  const MOST = 8;
  const found = document.getElementById("ask-found");
  const status = document.getElementById("ask-told");
  const answer = document.getElementById("answer");
  const legend = details.use(await load("legend"));
  const { texts, ...columns } = await load("operators");
  const operators = rowsOf(columns).map((row) => ({ ...row, text: texts[row.reason].toLowerCase() }));
  // Functions and modules of several operators have no page: the answer is whole.
  const functions = rowsOf(await load("functions")).map((row) => ({ ...row, text: "", public: 1 }));
  const rows = [...operators, ...functions];
  const badge = (row) => (row.works ? make("span", { class: `badge v-${row.style}` }, row.headline) : details.badge(legend.verdicts[row.verdict], row.inPart));
  let chosen = "";

  function matching(text) {
    const query = search.read(text);
    if (!query.words.length) return [];
    return search.best(rows.map((row) => ({ row, rank: search.rank(query, row.name, row.text) })))
      .sort((a, b) => a.rank - b.rank || b.row.public - a.row.public || a.row.name.length - b.row.name.length || (a.row.name < b.row.name ? -1 : 1));
  }

  function keep(text, name) {
    const kept = new URLSearchParams();
    if (text) kept.set("q", text);
    if (name) kept.set("open", name);
    const hash = kept.toString();
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }

  async function show(row) {
    chosen = row ? row.name : "";
    for (const button of found.querySelectorAll("button")) button.setAttribute("aria-current", String(button.dataset.name === chosen));
    if (!row) { answer.replaceChildren(); return; }
    if (row.works) {
      answer.replaceChildren(make("h3", {}, badge(row), " ", make("code", {}, row.name)), ...details.answers(row, "h4"));
      return;
    }
    try {
      const known = await details.operator(row.name, row.part);
      if (chosen !== row.name) return;
      answer.replaceChildren(make("h3", {}, badge(row), " ", make("code", {}, row.name)),
        ...details.answers(known, "h4"),
        ...details.inDtypes(known, search.read(field.value).dtypes),
        make("p", {}, make("a", { href: known.page }, "Its page: dtype by dtype, overload by overload, release by release")));
    } catch (error) {
      answer.replaceChildren(make("p", { class: "notice", role: "alert" }, error.message));
    }
  }

  function ask(text, wanted) {
    const matches = matching(text);
    const { words, dtypes, filters } = search.read(text);
    const narrowed = !words.length && (dtypes.length || Object.keys(filters).length);
    if (narrowed) status.replaceChildren(make("a", { href: `operators.html#q=${encodeURIComponent(text)}` }, `All operators: ${text}`));
    else status.textContent = !text.trim() ? "" : matches.length
      ? `${number(matches.length)} ${matches.length === 1 ? "name matches" : "names match"}`
      : "nothing has a name like it; mpsmith trace lists what a program calls";
    found.replaceChildren(...matches.slice(0, MOST).map(({ row }) => make("li", {}, make("button", { type: "button", "data-name": row.name,
      "aria-current": "false", onclick: () => { keep(field.value, row.name); show(row); } },
    badge(row), " ", make("code", {}, row.name), !row.works && row.since ? make("span", { class: "soft" }, ` since ${row.since}`) : ""))));
    const named = wanted && rows.find((row) => row.name === wanted);
    const best = matches[0] && matches[0].rank <= 1 ? matches[0].row : null;
    return show(named || best);
  }

  field.addEventListener("input", () => { keep(field.value, ""); ask(field.value, ""); });
  field.form.addEventListener("submit", (event) => { event.preventDefault(); found.querySelector("button")?.click(); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.matches("input, select")) { event.preventDefault(); field.focus(); }
    if (event.key === "Escape" && event.target === field) { field.value = ""; keep("", ""); ask("", ""); }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const stops = [field, ...found.querySelectorAll("button")];
    if (!step || !stops.includes(event.target)) return;
    event.preventDefault();
    stops[Math.max(0, Math.min(stops.length - 1, stops.indexOf(event.target) + step))].focus();
  });
  function readAddress() {
    const given = new URLSearchParams(location.hash.slice(1));
    field.value = given.get("q") || given.get("open") || field.value;  // the user may be typing already
    return ask(field.value, given.get("open") || "");
  }
  addEventListener("hashchange", readAddress);
  await readAddress();
});
