"use strict";
// Tables of the page: sorted by a click on a heading, filtered by a field above them; a link opens its section.
document.addEventListener("DOMContentLoaded", () => {
  const { make, number } = window.mpsmith;
  const value = (row, column) => {
    const cell = row.cells[column];
    if (!cell) return "";
    const text = cell.dataset.value ?? cell.textContent.trim();  // "1.5 MB" is given as a number too
    const plain = text.replaceAll(",", "");
    return /^-?\d+(\.\d+)?$/.test(plain) ? Number(plain) : text;
  };
  const release = (text) => (/^\d+\.\d+(\.\d+)?$/.test(text) ? text.split(".").map(Number) : null);

  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    const [one, other] = [release(String(a)), release(String(b))];
    if (one && other) return one[0] - other[0] || one[1] - other[1] || (one[2] || 0) - (other[2] || 0);
    return a === "" || b === "" ? (a === "") - (b === "") : String(a).localeCompare(String(b), "en");
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = make("button", { type: "button", class: "sort" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows].map((row) => [value(row, column), row]);
        rows.sort(([a], [b]) => (down ? compare(b, a) : compare(a, b)));
        body.append(...rows.map(([, row]) => row));
      });
    });
  }

  for (const field of document.querySelectorAll("input[data-narrows]")) {
    const table = document.getElementById(field.dataset.narrows);
    const status = document.getElementById(`${field.dataset.narrows}-found`);
    const rows = [...table.tBodies[0].rows];
    const texts = rows.map((row) => row.textContent.toLowerCase());
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      rows.forEach((row, i) => {
        row.hidden = !words.every((word) => texts[i].includes(word));
        left += !row.hidden;
      });
      status.textContent = words.length ? `${number(left)} of ${number(rows.length)} rows` : "";
    });
  }

  /** Opens what the address names: a section that is folded shows nothing to jump to. */
  function reveal() {
    const place = document.getElementById(decodeURIComponent(location.hash.slice(1)).replace(/[^\w-]/g, ""));
    if (!(place instanceof HTMLDetailsElement)) return;
    place.open = true;
    place.scrollIntoView();
  }
  addEventListener("hashchange", reveal);
  reveal();
});
