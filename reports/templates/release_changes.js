"use strict";
// What changed between two releases, operator by operator. The two are in the address after #, so that it can be shared.
document.addEventListener("DOMContentLoaded", async () => {
  const { make, rowsOf, load, number } = window.mpsmith;
  const place = document.getElementById("release-changes");
  if (!place) return;
  const { releases, audited, letters, operators } = await load("releases");
  const rows = rowsOf(operators);
  const fields = { from: document.getElementById("from"), to: document.getElementById("to") };
  // Where a call runs: 2 on mps, 1 partly, 0 on the CPU or nowhere.
  const REACH = { N: 2, C: 2, P: 1 };
  const GROUPS = [
    ["New on mps", ({ before, after }) => reach(after) > reach(before) && before !== "-"],
    ["New operators that run on mps", ({ before, after }) => before === "-" && reach(after) > 0],
    ["No longer on mps", ({ before, after }) => reach(after) < reach(before) && after !== "-"],
    ["Removed", ({ before, after }) => after === "-" && before !== "-"],
    ["New operators that do not run on mps", ({ before, after }) => before === "-" && reach(after) === 0],
    ["Other changes", () => true],
  ];
  const reach = (letter) => REACH[letter] || 0;

  for (const field of Object.values(fields)) {
    for (const release of [...releases].reverse()) field.append(make("option", { value: release }, release));
    field.addEventListener("change", () => {
      history.replaceState(null, "", `#from=${fields.from.value}&to=${fields.to.value}`);
      draw();
    });
  }

  function grouped(from, to) {
    const groups = new Map(GROUPS.map(([name]) => [name, []]));
    for (const { name, page, row } of rows) {
      const change = { name, page, before: row[from], after: row[to] };
      if (change.before === change.after) continue;
      groups.get(GROUPS.find(([, holds]) => holds(change))[0]).push(change);
    }
    return groups;
  }

  function table(heading, changes) {
    const head = ["operator", fields.from.value, fields.to.value].map((text) => make("th", { scope: "col" }, text));
    const body = changes.map(({ name, page, before, after }) => make("tr", {},
      make("th", { scope: "row" }, make("a", { href: page }, name.replace("aten::", ""))),
      make("td", {}, letters[before]), make("td", {}, letters[after])));
    return make("details", { class: "static", ...(changes.length < 60 ? { open: "" } : {}) },
      make("summary", {}, make("h3", {}, heading), " ", make("span", { class: "count" }, number(changes.length))),
      make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": heading },
        make("table", { class: "listing" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body))));
  }

  function draw() {
    const groups = [...grouped(releases.indexOf(fields.from.value), releases.indexOf(fields.to.value))];
    const changed = groups.filter(([, changes]) => changes.length);
    const all = changed.reduce((sum, [, changes]) => sum + changes.length, 0);
    document.getElementById("release-changes-found").textContent =
      `${number(all)} of ${number(rows.length)} operators changed from torch ${fields.from.value} to ${fields.to.value}`;
    place.replaceChildren(...changed.map(([heading, changes]) => table(heading, changes)));
  }

  function readAddress() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const known = (name, otherwise) => (releases.includes(asked.get(name)) ? asked.get(name) : otherwise);
    fields.from.value = known("from", audited === releases.at(-1) ? releases.at(-2) || audited : audited);
    fields.to.value = known("to", releases.at(-1));
    draw();
  }
  addEventListener("hashchange", readAddress);
  readAddress();
});
