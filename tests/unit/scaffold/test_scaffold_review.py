"""The review of scaffolds: what a row says, how rows are counted, and what becomes of a process that ends."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from mpsmith.scaffold.conformance import Subject
from mpsmith.scaffold.review import ReviewRow, row_of, table

GREEN = ReviewRow("var", "reduction", {}, 65, 22, 0, "")
WRONG = ReviewRow("_ctc_loss", "reduction", {"shapes": "60 elements for 84"}, 402, 4, 19, "test_forms: a | b")


class TestRows:
    def test_green_needs_launches_and_tests_that_all_pass(self) -> None:
        assert GREEN.green
        assert not replace(GREEN, launches=0).green
        assert not replace(GREEN, passed=0).green
        assert not replace(GREEN, failed=1).green

    def test_an_aspect_is_right_only_where_something_was_launched(self) -> None:
        assert GREEN.says("grid") == "right"
        assert WRONG.says("shapes") == "60 elements for 84"
        assert replace(GREEN, launches=0).says("grid") == "not run"

    def test_the_table_counts_elementwise_reductions_and_pooling(self) -> None:
        text = table([GREEN, WRONG, replace(GREEN, operator="mode", kind="sort")])
        assert "| `var` | reduction | right | right | right | right | right | 22 of 22 |  |" in text
        assert r"test_forms: a \| b" in text
        assert text.endswith("Green: 1 of 2 elementwise, reduction and pooling gaps, 50 %.\n")
        assert "Green: 0 of 0" in table([])


class TestProcesses:
    def test_what_a_process_tells_is_its_row(self) -> None:
        assert row_of("var", "reduction", 0, json.dumps(asdict(GREEN))) == GREEN

    @pytest.mark.parametrize(
        ("status", "how"), [(-11, "SIGSEGV"), (3, "status 3"), (0, "status 0")], ids=["signal", "status", "silence"]
    )
    def test_a_process_that_tells_nothing_is_not_green(self, status: int, how: str) -> None:
        row = row_of("var", "reduction", status, "")
        assert not row.green
        assert (row.operator, row.kind, row.says("grid")) == ("var", "reduction", "not run")
        assert how in row.first


class TestMissingBackwards:
    SUBJECT = Subject("aten::pool", ("pool.out",))

    def test_the_kernel_of_a_backward_alone_is_another_gap(self) -> None:
        with pytest.warns(UserWarning, match=r"no gradients were compared: aten::pool_backward\.grad_input"):
            assert self.SUBJECT._lacks_backward("missing: aten::pool_backward.grad_input has no kernel for mps")

    @pytest.mark.parametrize(
        "reason",
        [
            "missing: aten::pool.out has no kernel for mps",
            "missing: aten::pool.out has no kernel for mps; aten::pool_backward has no kernel for mps",
            "wrong: element 3 of aten::pool_backward differs",
            "",
        ],
    )
    def test_anything_else_speaks_against_the_kernel(self, reason: str) -> None:
        assert not self.SUBJECT._lacks_backward(reason)

    def test_a_backward_under_test_has_to_be_there(self) -> None:
        subject = Subject("aten::pool_backward", ("pool_backward",))
        assert not subject._lacks_backward("missing: aten::pool_backward has no kernel for mps")
