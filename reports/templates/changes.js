"use strict";
// What changed between two releases or two audits. The two are in the address after #, so that it can be shared.
document.addEventListener("DOMContentLoaded", async () => {
  const { make, rowsOf, load, number } = window.mpsmith;
  const place = document.getElementById("changes");
  if (!place) return;
  const ABSENT = "-";

  /** Every operator by its kernels in the wheels of releases. */
  async function releases() {
    const { releases: choices, audited, letters, operators } = await load("releases");
    const rows = rowsOf(operators);
    const REACH = { N: 2, C: 2, P: 1 };
    return {
      choices, noun: "operators", from: audited === choices.at(-1) ? choices.at(-2) || audited : audited, to: choices.at(-1),
      shown: (release) => `torch ${release}`,
      heads: (from, to) => [`torch ${from}`, `torch ${to}`],
      differ: ({ before, after }) => before !== after,
      groups: ["New on mps", "New operators that run on mps", "No longer on mps", "Removed", "New operators that do not run on mps", "Other changes"],
      pairs: async (from, to) => rows.map(({ name, page, row }) =>
        ({ name, page, before: row[choices.indexOf(from)], after: row[choices.indexOf(to)] })),
      reach: (letter) => REACH[letter] || 0,
      text: (letter) => letters[letter],
    };
  }

  /** Every executed overload by the verdicts of two audits; an audit may have other dtypes and verdicts. */
  async function audits() {
    const choices = await load("audits");
    const read = async (name) => {
      const { dtypes, verdicts, names, rows } = await load(`audits/${name}`);
      return new Map(names.map((overload, i) => [overload, JSON.stringify([verdicts[Number(rows[i][0])],
        Object.fromEntries(dtypes.map((dtype, k) => [dtype, rows[i][k + 1]]).filter(([, digit]) => digit !== ABSENT).map(([dtype, digit]) => [dtype, verdicts[Number(digit)]]))])]));
    };
    const parsed = (value) => (value === ABSENT ? ["not executed", {}] : JSON.parse(value));
    const REACH = { native: 2, composite: 2, "dtype gap": 1 };
    return {
      choices, noun: "overloads", from: choices.at(-2) || choices[0], to: choices.at(-1),
      shown: (name) => name.replaceAll("_", " "),
      heads: () => ["before", "after"],
      differ: ({ before, after }) => {
        const [[was, wasOf], [is, isOf]] = [parsed(before), parsed(after)];
        return was !== is || Object.keys(wasOf).some((dtype) => isOf[dtype] && isOf[dtype] !== wasOf[dtype]);
      },
      groups: ["Better", "New, and right on mps", "Worse", "No longer executed", "New, and not right on mps", "Other changes"],
      pairs: async (from, to) => {
        const [before, after] = [await read(from), await read(to)];
        return [...new Set([...before.keys(), ...after.keys()])].sort().map((name) => ({
          name, page: `operators.html#view=overloads&q=${encodeURIComponent(name)}&open=${encodeURIComponent(name)}`,
          before: before.get(name) || ABSENT, after: after.get(name) || ABSENT,
        }));
      },
      reach: (value) => REACH[parsed(value)[0]] || 0,
      text: (value, other) => {
        const [[verdict, dtypes], [, others]] = [parsed(value), parsed(other)];
        const different = Object.keys(dtypes).filter((dtype) => dtypes[dtype] !== verdict && dtypes[dtype] !== others[dtype]);
        return verdict + (different.length ? `; ${different.map((dtype) => `${dtype} ${dtypes[dtype]}`).join(", ")}` : "");
      },
    };
  }

  const source = await (place.dataset.of === "audits" ? audits() : releases());
  const HOLDS = [
    ({ before, after }) => source.reach(after) > source.reach(before) && before !== ABSENT,
    ({ before, after }) => before === ABSENT && source.reach(after) > 0,
    ({ before, after }) => source.reach(after) < source.reach(before) && after !== ABSENT,
    ({ before, after }) => after === ABSENT && before !== ABSENT,
    ({ before, after }) => before === ABSENT && source.reach(after) === 0,
    () => true,
  ];
  const fields = { from: document.getElementById("from"), to: document.getElementById("to") };
  for (const field of Object.values(fields)) {
    for (const choice of [...source.choices].reverse()) field.append(make("option", { value: choice }, source.shown(choice)));
    field.addEventListener("change", () => {
      history.replaceState(null, "", `#from=${encodeURIComponent(fields.from.value)}&to=${encodeURIComponent(fields.to.value)}`);
      draw();
    });
  }

  function table(heading, changes) {
    const head = [source.noun.slice(0, -1), ...source.heads(fields.from.value, fields.to.value)].map((text) => make("th", { scope: "col" }, text));
    const body = changes.map(({ name, page, before, after }) => make("tr", {},
      make("th", { scope: "row" }, make("a", { href: page }, name.replace("aten::", ""))),
      make("td", {}, source.text(before, after)), make("td", {}, source.text(after, before))));
    return make("details", { class: "static", ...(changes.length < 60 ? { open: "" } : {}) },
      make("summary", {}, make("h3", {}, heading), " ", make("span", { class: "count" }, number(changes.length))),
      make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": heading },
        make("table", { class: "listing" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body))));
  }

  async function draw() {
    const { from, to } = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.value]));
    const every = await source.pairs(from, to);
    if (from !== fields.from.value || to !== fields.to.value) return;
    const groups = new Map(source.groups.map((name) => [name, []]));
    const changed = every.filter(source.differ);
    for (const change of changed) groups.get(source.groups[HOLDS.findIndex((holds) => holds(change))]).push(change);
    document.getElementById("changes-found").textContent =
      `${number(changed.length)} of ${number(every.length)} ${source.noun} changed from ${source.shown(from)} to ${source.shown(to)}`;
    place.replaceChildren(...[...groups].filter(([, changes]) => changes.length).map(([heading, changes]) => table(heading, changes)));
  }

  async function readAddress() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const unknown = [];
    // "2.13" means 2.13.0; a "+" that was typed into the address arrives as a space.
    const known = (name) => {
      const wanted = (asked.get(name) || "").replaceAll(" ", "+");
      const chosen = source.choices.find((choice) => choice === wanted) || source.choices.find((choice) => wanted && choice.startsWith(`${wanted}.`));
      if (wanted && !chosen) unknown.push(wanted);
      return chosen || source[name];
    };
    fields.from.value = known("from");
    fields.to.value = known("to");
    await draw();
    if (unknown.length) document.getElementById("changes-found").append(` (not known here: ${unknown.join(", ")})`);
  }
  addEventListener("hashchange", readAddress);
  await readAddress();
});
