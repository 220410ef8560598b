"""What axe-core, the checker of accessibility, finds on pages in Chromium."""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from support.browser import dom_after


@dataclass(frozen=True)
class Look:
    """What axe-core found on a page in a window of this width and theme, and how many of its rules were kept.

    `violations`: the rule, and what breaks it. `scrolls`: whether the page is wider than the window.
    """

    page: str
    width: int
    theme: str
    passes: int
    violations: list[str]
    scrolls: bool


# Opens each page in a frame, adds axe-core to it, and puts what that finds into the title. Of long tables the first
# rows do: the others are like them, and each costs as much.
_LOOKS = """
const checker = new URL("axe.min.js", location.href).href;  // pages lie in folders, too
const loaded = (node, parent) => new Promise((resolve) => { node.onload = resolve; parent.append(node); });
const look = async ([page, width, theme]) => {
  const frame = Object.assign(document.createElement("iframe"), { width, height: 900, src: `${page}#theme=${theme}` });
  await loaded(frame, document.body);
  const inside = frame.contentDocument;
  await new Promise((resolve) => setTimeout(resolve, 200));
  for (const table of inside.querySelectorAll("tbody")) [...table.rows].slice(20).forEach((row) => row.remove());
  await loaded(Object.assign(inside.createElement("script"), { src: checker }), inside.head);
  const { passes, violations } = await frame.contentWindow.axe.run();
  const scrolls = inside.documentElement.scrollWidth > frame.contentWindow.innerWidth;
  frame.remove();
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(" ")}`);
  return { page, width, theme, passes: passes.length, violations: told, scrolls };
};
const all = async () => {
  const found = [];
  for (const view of %s) found.push(await look(view));
  document.title = JSON.stringify(found);
};
all();
"""


def looked_at(folder: Path, views: Iterable[tuple[str, int, str]]) -> list[Look]:
    """What axe-core finds on pages of a folder: each in a window of a width, with a theme (dark or light)."""
    axe = next(file for file in metadata.files("axe-core-python") or () if file.name == "axe.min.js")
    shutil.copy(str(axe.locate()), folder)
    driver = folder / "looks.html"
    script = _LOOKS % json.dumps(list(views))
    driver.write_text(f"<!doctype html><title></title><body><script>{script}</script>", encoding="utf-8")
    dom = dom_after(60, driver, "", "--allow-file-access-from-files")  # else a frame is closed to the page around it
    title = re.search(r"<title>(.*?)</title>", dom, re.DOTALL)
    assert title
    return [Look(**look) for look in json.loads(html.unescape(title[1]))]
