"""What host code does besides encoding commands: the table that ships, and who speaks of it."""

from collections import Counter
from pathlib import Path

import pytest
import torch

from mpsmith.audit.answers.answer import answer
from mpsmith.audit.answers.measured import host_facts
from mpsmith.audit.answers.measuring import known_work, write_host_facts
from mpsmith.audit.answers.sentences import as_data, as_text
from mpsmith.simulator.upstream.host_work import HostWork
from mpsmith.tracing.classification import traits_of

HEAD = "release\toverload\tcalls\twaits\ton_cpu\twhen\n"


@pytest.mark.parametrize(
    ("name", "said"), [("argwhere", "nonzero: waits for the GPU in every call (SIMULATED)"), ("add", "")]
)
def test_an_answer_names_the_inner_waits(name: str, said: str) -> None:
    assert [line for line in as_text(answer(name)).splitlines() if "  host " in line] == [
        f"  host      aten::{said}"
    ] * bool(said)
    assert len(as_data(answer(name))["inside"]) == bool(said)  # type: ignore[arg-type]
    assert answer(name, "2.12.1").inside == ()  # not measured


def test_a_call_whose_kernel_always_waits_is_traced_as_a_wait() -> None:
    assert traits_of(torch.ops.aten.masked_fill_.Tensor, frozenset()).waits
    assert not traits_of(torch.ops.aten.masked_fill_.Scalar, frozenset()).waits
    assert not traits_of(torch.ops.aten.index_copy.default, frozenset()).waits  # of 0-dimensional tensors alone


def test_host_facts_are_replaced_and_notes_stay(tmp_path: Path) -> None:
    path = tmp_path / "host_work.tsv"
    path.write_text(f"{HEAD}2.12.0\taten::b\t1\t1\t\tin every call\n2.14.0\taten::a\t1\t1\t\twhere it is cold\n")
    svd = HostWork(3, 0, 3, Counter({"aten::linalg_svd": 1, "copy to the host": 1, "aten::_linalg_check_errors": 1}))
    write_host_facts("2.14.0", {"aten::svd": svd, "aten::a": HostWork(2, 0, 1), "aten::add": HostWork(5, 5, 0)}, path)
    assert path.read_text().splitlines()[2:] == [
        "2.14.0\taten::a\t2\t1\t\twhere it is cold",
        "2.14.0\taten::svd\t3\t3\taten::linalg_svd\tin some calls",
    ]
    host_facts.cache_clear()
    write_host_facts(
        "2.14.0", {"aten::svd": HostWork(9), "aten::c": HostWork(1, 0, 1)} | known_work("2.14.0", path), path
    )
    assert "\taten::c\t1\t1\t\tin some calls\n2.14.0\taten::svd\t3\t3\taten::linalg_svd\t" in path.read_text()
    said = "aten::svd: native, but on the CPU inside (aten::linalg_svd) in some calls (SIMULATED)"
    host_facts.cache_clear()
    assert str(host_facts("2.14.0+cpu", path)["aten::svd"]) == said
