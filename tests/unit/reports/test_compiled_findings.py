from __future__ import annotations

from mpsmith.audit.compiled.defects.measurement_file import KeptRelease, KeptShown, read
from mpsmith.audit.compiled.defects.table import DEFECTS
from mpsmith.cache import PACKAGE
from mpsmith.reports.compiled_findings import MOST_LINES, compiled_findings_page

WRONG = KeptShown("wrong", "forward: 1 of 3 elements differ", "Inductor's Metal", "kernel void k() {\n}\n")
RIGHT = KeptShown("metal", "", "", "")


def release(name: str, overlay: bool, *wrong: str, cannot: str = "") -> KeptRelease:
    shown = {} if cannot else {each.number: WRONG if each.number in wrong else RIGHT for each in DEFECTS}
    return KeptRelease(name, overlay, cannot, shown)


def test_the_published_page_is_what_the_table_and_the_measurement_say() -> None:
    page = PACKAGE / "docs" / "compiled_findings.md"
    assert page.read_text("utf-8") == compiled_findings_page(DEFECTS, read()), (
        "write it anew with `mpsmith compiled defects --codegen ... --record`, as the page itself says"
    )


def test_the_page_says_what_each_release_mended_and_broke() -> None:
    page = compiled_findings_page(
        DEFECTS, [release("2.12.1", True, "U3"), release("2.13.0", False, "U2"), release("2.15.0", True, "U2")]
    )
    assert "- 2.13.0 mended U3 and broke U2 (against 2.12.1)." in page
    assert "(against 2.13.0)" not in page
    assert "| U2 | – | wrong | wrong |" in page
    assert "| | 2.12.1 | **2.13.0** | 2.15.0 |" in page


def test_a_release_that_cannot_be_laid_over_says_why_and_has_no_column() -> None:
    page = compiled_findings_page(
        DEFECTS, [release("2.13.0", False, "U2"), release("2.99.0", True, cannot="it needs a module that is not there")]
    )
    assert "torch 2.99.0: it needs a module that is not there" in page
    assert "| | **2.13.0** |" in page


def test_a_long_kernel_is_cut_in_the_middle() -> None:
    lines = "\n".join(f"line {number};" for number in range(100))
    long = {"U2": KeptShown("wrong", "", "", lines)}
    shown = {each.number: long.get(each.number, RIGHT) for each in DEFECTS}
    page = compiled_findings_page(DEFECTS, [KeptRelease("2.13.0", False, "", shown)])
    assert "line 0;" in page
    assert "line 99;" in page
    assert f"// ... {100 - MOST_LINES + 1} lines" in page
    assert "line 60;" not in page
