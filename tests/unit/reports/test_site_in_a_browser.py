"""The site's scripts, run by Chromium from disk: search, filters, order, details, keys, themes, and narrow windows."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest

from mpsmith.audit.model.verdicts import OverloadVerdict
from mpsmith.reports.evidence.devices import findings_by_device
from mpsmith.reports.site.content import SiteContent
from mpsmith.reports.site.writing import write_site
from support.audits import make_summary
from support.axe import looked_at
from support.browser import dumped_dom, needs_chromium
from support.evidence_files import MARKUP, evidence, hostile_evidence, kernel_row

pytestmark = needs_chromium

MODE_IS_WRONG = {"aten::mode": {"float32": {"wrong": 2}, "int64": {"passed": 3}}}
TIMED = kernel_row("mode", "aten::mode", timing={"operator": "aten::mode", "elements": 8, "kernel": 2.0, "cpu": 1.0})


# What a user does, step by step; each waits until the page shows something. What was seen goes into the title.
STEPS = """
const seen = [];
const tell = (...values) => seen.push(values.map(String).join("/"));  // String joins a list by commas
const wait = (done) => new Promise((resolve, reject) => {
  let left = 200;
  const look = () => {
    if (done()) resolve();
    else if (left-- > 0) setTimeout(look, 5);
    else reject(new Error(`never: ${done}`));
  };
  look();
});
const all = (selector) => [...document.querySelectorAll(selector)];
const names = () => all("#rows .open").map((each) => each.textContent.replace("aten::", ""));
const press = (key) =>
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const head = (name) => all("#rows thead .sort").find((each) => each.textContent === name);
const type = (id, text) => {
  const field = document.getElementById(id);
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
};
const failed = (error) => tell("ERROR", error.message.replaceAll(" ", "_"));
addEventListener("error", (event) => failed(event));
addEventListener("unhandledrejection", (event) => failed(event.reason));
const steps = async () => { %s };
const done = () => { document.title = seen.join(" "); };
addEventListener("load", () => setTimeout(() => steps().catch(failed).finally(done)));
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    summary = make_summary(folder / "store.sqlite")
    sent = findings_by_device([evidence(MODE_IS_WRONG, kernels=[TIMED]), evidence(simulated=True), hostile_evidence()])
    write_site(SiteContent(summary, devices=sent), folder / "pages")
    return folder / "pages"


def seen(page: Path, steps: str, address: str = "", *, width: int = 1280) -> list[str]:
    """What the steps told, in order."""
    dom = dumped_dom(page, address, script=STEPS % steps, width=width)
    title = re.search(r"<title>(.*?)</title>", dom, re.DOTALL)
    assert title
    return html.unescape(title[1]).split(" ")


def test_the_explorer_finds_filters_sorts_and_opens(site: Path) -> None:
    steps = """
    await wait(() => names().length === 8);
    tell("all", names());
    type("search", "torch.mode");
    await wait(() => names().length === 1);
    tell("torch", names());
    type("search", "nothing like it");
    await wait(() => !names().length);
    tell("none", document.getElementById("found").textContent.split(" ")[0]);
    type("search", "");
    await wait(() => names().length === 8);
    const chip = all("#chips button").find((each) => each.textContent.includes("missing"));
    chip.focus();
    chip.click();
    await wait(() => names().length === 1);
    tell("chip", names(), document.activeElement.getAttribute("aria-pressed"));
    press("Escape");
    await wait(() => names().length === 8);
    tell("escape", document.activeElement.id);
    head("name").click();
    await wait(() => names()[0] === "cos");
    tell("sorted", all("#rows [aria-sort]").map((each) => each.getAttribute("aria-sort")));
    head("name").click();
    await wait(() => names()[7] === "cos");
    tell("reversed", all("#rows [aria-sort]").map((each) => each.getAttribute("aria-sort")));
    press("Escape");
    press("/");
    press("ArrowDown");
    tell("key", document.activeElement.className);
    document.activeElement.click();
    await wait(() => all("tr.detail").length);
    tell("open", all("tr.detail h3").length > 3, location.hash.includes("open="));
    all("[role=tab]")[2].click();
    await wait(() => names().includes("unknown.thing"));
    tell("entries", names()[0]);
    document.getElementById("theme").click();
    tell("theme", document.documentElement.className);
    """
    shown = dict(line.split("/", 1) for line in seen(site / "operators.html", steps))
    assert shown["all"].split(",")[:2] == ["sum", "mode"]
    assert shown["torch"] == "mode"
    assert shown["none"] == "0"
    assert shown["chip"] == "mode/true"
    assert shown["escape"] == "search"
    assert shown["sorted"] == "ascending"
    assert shown["reversed"] == "descending"
    assert shown["key"] == "open"
    assert shown["open"] == "true/true"
    assert shown["entries"] == "unknown.thing"
    assert shown["theme"] in ("dark", "light")
    assert "ERROR" not in shown


def test_details_show_the_failing_case_and_its_replay(site: Path) -> None:
    dom = dumped_dom(site / "operators.html", "open=aten::sum")
    assert "<code>mpsmith replay 'opinfo:sum:float32:1'</code>" in dom
    assert "raises &lt;script&gt;" in dom
    assert "evidence: dispatch only" in dom
    assert "Does it work?" in dom


def test_an_overload_opens_with_its_details(site: Path) -> None:
    dom = dumped_dom(site / "operators.html", "view=overloads&open=aten::cos")
    assert 'tr class="detail"' in dom
    assert "surface: " in dom


def test_a_view_has_an_address(site: Path) -> None:
    shown = dumped_dom(site / "operators.html", "view=overloads&dtype=bool&verdict=dtype+gap&grade=dispatch only")
    assert re.findall(r'class="open"[^>]*>([^<]+)</button>', shown) == ["aten::cos"]
    assert "1 of 8 overloads with bool, dispatch only (SIMULATED)" in shown


def test_the_first_page_answers(site: Path) -> None:
    steps = """
    const texts = (selector) => all(selector).map((each) => each.textContent);
    const cards = () => texts("#ask-found code");
    for (const text of ["torch.mode", "aten::mode.values", "F.relu", "nn.Heaviside(1)"]) {
      type("ask", text);
      await wait(() => cards().length && cards()[0] === texts("#answer h3 code")[0]);
      tell(text, cards()[0]);
    }
    type("ask", "mode");
    await wait(() => all("#answer .steps li").length && texts("#answer h3 code")[0] === "aten::mode");
    tell("steps", texts("#answer .command code")[0].split(" ")[0], all("#answer .releases li").length > 10);
    type("ask", "cos bool");
    await wait(() => all("#answer table").length);
    tell("dtypes", ...new Set(texts("#answer tbody th")));
    type("ask", "mod");
    await wait(() => cards().length && !texts("#answer h3 code").length);
    tell("begun", cards()[0]);
    type("ask", "multiheadattention");
    await wait(() => texts("#answer h3 code")[0] === "nn.MultiheadAttention");
    tell("module", all("#answer .answers section").length);
    type("ask", "bfloat16");
    await wait(() => all("#ask-told a").length);
    tell("dtype", document.querySelector("#ask-told a").getAttribute("href"));
    type("ask", "no_such_thing");
    await wait(() => !cards().length);
    tell(document.getElementById("ask-told").textContent.slice(0, 2));
    """
    shown = seen(site / "index.html", steps)
    assert shown == [
        "torch.mode/aten::mode",
        "aten::mode.values/aten::mode",
        "F.relu/aten::relu",
        "nn.Heaviside(1)/aten::heaviside",
        "steps/import/true",
        "dtypes/bool",
        "begun/aten::mode",
        "module/3",
        "dtype/operators.html#q=bfloat16",
        "no",
    ]


def test_filters_can_be_typed(site: Path) -> None:
    steps = """
    await wait(() => names().length === 8);
    const count = () => document.getElementById("found").textContent;
    type("search", "status:missing");
    await wait(() => names().length === 1);
    tell("missing", names());
    type("search", "status:!missing");
    await wait(() => names().length === 7);
    tell("others", names().filter((name) => name === "mode"));
    type("search", "status:dtype-gap dtype:bool");
    await wait(() => count().includes("of 8"));
    tell("gap", names());
    type("search", "since:1.13 mode");
    await wait(() => !names().length);
    type("search", "status:nosuch");
    await wait(() => count().includes("nosuch"));
    tell(count());
    """
    shown = seen(site / "operators.html", steps)
    assert shown[0] == "missing/mode"
    assert shown[1] == "others/"
    assert " ".join(shown[3:]) == "no row can have status:nosuch"


def test_two_releases_are_compared_by_address(site: Path) -> None:
    shown = dumped_dom(site / "releases.html", "from=2.13.0&to=2.15.0")
    assert "operators changed from torch 2.13.0 to torch 2.15.0" in shown
    gained = re.search(r"<h3>New on mps</h3>.*?</table>", shown, re.DOTALL)
    assert gained
    assert 'href="operators/relu.html"' not in gained[0]
    nothing = dumped_dom(site / "releases.html", "from=2.15.0&to=2.15.0")
    assert re.search(r"0 of [\d,]+ operators changed", nothing)
    typed = dumped_dom(site / "releases.html", "from=2.13&to=9")
    assert "operators changed from torch 2.13.0 to torch 2.15.0 (not known here: 9)" in typed


def test_two_audits_are_compared_by_address(tmp_path: Path) -> None:
    summary = make_summary(tmp_path / "store.sqlite")
    summary.run.environment["torch"] += "+cpu"
    worse = [replace(o, verdict=OverloadVerdict.MISSING) if o.name == "aten::cos" else o for o in summary.overloads]
    for audit in (summary, replace(summary, overloads=tuple(worse))):
        write_site(SiteContent(audit), tmp_path / "pages")
    page = tmp_path / "pages" / "audits.html"
    names = re.findall(r'"(torch_[^"]+)"', (tmp_path / "pages" / "data" / "audits.js").read_text())
    assert len(names) == 2
    assert "+" in names[0]
    shown = dumped_dom(page, f"from={names[0]}&to={names[1]}")
    assert re.search(r"1 of \d overloads changed", shown)
    assert re.search(r"<h3>Worse</h3>.*?>cos</a></th><td>[a-z ]+</td><td>missing[^<]*</td>", shown, re.DOTALL)
    assert re.search(r"0 of \d overloads changed", dumped_dom(page, f"from={names[1]}&to={names[1]}"))
    (look,) = looked_at(page.parent, [("audits.html", 320, "light")])
    assert not look.scrolls, "the names of audits are wider than the window"


def test_the_page_of_an_operator_has_the_answers_of_the_audit(site: Path) -> None:
    shown = dumped_dom(site / "operators" / "mode.html")
    assert "Does it work?" in shown
    assert 'href="../operators.html#view=entries' in shown
    assert "By release and device" in shown


def test_tables_of_a_page_are_sorted_and_narrowed(site: Path) -> None:
    steps = """
    const table = document.querySelector("#operators-in-torch-2-13-0-table");
    const shown = () => [...table.tBodies[0].rows].filter((row) => !row.hidden);
    const first = () => shown()[0].cells[0].textContent;
    tell(first().startsWith("_"));
    const button = table.tHead.querySelector("button");
    button.click();
    tell(first().startsWith("_"), button.parentNode.getAttribute("aria-sort"));
    button.click();
    tell(first()[0], button.parentNode.getAttribute("aria-sort"));
    const field = document.querySelector("input[data-narrows=operators-in-torch-2-13-0-table]");
    field.value = "softshrink";
    field.dispatchEvent(new Event("input"));
    tell(shown().map((row) => row.cells[0].textContent).sort());
    """
    assert seen(site / "releases.html", steps) == [
        "false",
        "true/ascending",
        "z/descending",
        "softshrink,softshrink_backward",
    ]


def test_every_page_is_accessible_in_narrow_windows_and_dark_themes(site: Path) -> None:
    """The rules of axe-core: contrast, names of what can be used, order of headings, regions, keys that reach all."""
    names = sorted(path.name for path in site.glob("*.html") if not path.name.startswith("driven-"))
    names += ["operators/mode.html", "operators/relu.html"]  # with what devices say of them, and without
    windows = cycle([(400, "dark"), (1280, "light"), (400, "light"), (1280, "dark")])
    views = [(name, *window) for name, window in zip(names, windows, strict=False)]
    looks = looked_at(site, views)
    assert [(look.page, look.width, look.theme) for look in looks] == views
    assert [(look.page, look.width, violation) for look in looks for violation in look.violations] == []
    assert [(look.page, look.width) for look in looks if look.scrolls] == []
    assert min(look.passes for look in looks) > 10


def test_markup_in_evidence_becomes_no_element(site: Path) -> None:
    """An image that cannot be loaded would run its script; scripts of the page narrow the table by what it holds."""
    steps = """
    const field = document.querySelector("input[data-narrows]");
    if (field) {
      field.value = "img";
      field.dispatchEvent(new Event("input"));
    }
    tell(all("main img, main script").length, document.querySelector("main").textContent.includes(%s));
    """
    assert seen(site / "operators" / "mode.html", steps % json.dumps(MARKUP)) == ["0/true"]
