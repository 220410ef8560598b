"""The generated pages: the registry, the published files, and what the pages about torch.compile say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpsmith.audit.compiled.defects.measurement_file import StoredRelease, StoredResult
from mpsmith.audit.compiled.defects.table import DEFECTS
from mpsmith.cache import PACKAGE
from mpsmith.errors import MpsmithError
from mpsmith.reports.pages import PAGES, Needs, PageInputs
from mpsmith.reports.pages.compiled_defects import MOST_LINES, defects_document
from mpsmith.reports.table import Table, markdown_section

PUBLISHED = PACKAGE / "reports" / "published"

WRONG = StoredResult("wrong", "forward: 1 of 3 elements differ", "Inductor's Metal", "kernel void k() {\n}\n")
RIGHT = StoredResult("metal", "", "", "")


def test_each_published_page_is_in_the_registry() -> None:
    assert {path.stem for path in PUBLISHED.glob("*.md")} - {"coverage"} <= set(PAGES)


@pytest.mark.parametrize("name", [page.name for page in PAGES.values() if page.needs is Needs.NOTHING])
def test_a_page_made_from_the_packages_data_is_up_to_date(name: str) -> None:
    assert (PUBLISHED / f"{name}.md").read_text("utf-8") == PAGES[name].markdown(PageInputs())


@pytest.mark.parametrize("name", ["kernel_backlog", "networks", "kernel_references"])
def test_a_page_without_its_inputs_is_an_error(name: str) -> None:
    assert not PAGES[name].can_be_made(PageInputs())
    with pytest.raises(MpsmithError, match=f"page {name} needs"):
        PAGES[name].markdown(PageInputs())


def measured(name: str, overlay: bool, *wrong: str, cannot: str = "") -> StoredRelease:
    shown = {} if cannot else {defect.number: WRONG if defect.number in wrong else RIGHT for defect in DEFECTS}
    return StoredRelease(name, overlay, cannot, shown)


def test_the_defects_over_the_releases() -> None:
    releases = [
        measured("2.12.1", True, "U3"),
        measured("2.13.0", False, "U2"),
        measured("2.15.0", True, "U2"),
        measured("2.99.0", True, cannot="it needs a module that is not there"),
    ]
    page = defects_document(DEFECTS, releases).markdown()
    assert "- 2.13.0 fixed U3 and broke U2 (compared with 2.12.1)." in page
    assert "(compared with 2.13.0)" not in page
    assert "| U2 | – | wrong | wrong |" in page
    assert "| | 2.12.1 | 2.13.0 (installed) | 2.15.0 |" in page
    assert "torch 2.99.0: it needs a module that is not there" in page


def test_a_long_kernel_is_cut_in_the_middle() -> None:
    lines = "\n".join(f"line {number};" for number in range(100))
    shown = {defect.number: RIGHT for defect in DEFECTS} | {"U2": StoredResult("wrong", "", "", lines)}
    page = defects_document(DEFECTS, [StoredRelease("2.13.0", False, "", shown)]).markdown()
    assert "line 0;" in page
    assert "line 99;" in page
    assert f"// ... {100 - MOST_LINES + 1} lines" in page
    assert "line 60;" not in page


def test_code_in_a_note_stays_code_and_the_rest_is_escaped() -> None:
    table = Table("a", ("b",), (("c",),), note="`x_y`: a_b is <b>, after `import mpsmith.kernels`.")
    assert r"`x_y`: a\_b is \<b\>, after `import mpsmith.kernels`." in markdown_section(table)
    assert r"one \` alone" in markdown_section(replace(table, note="one ` alone"))
