"""Plans of conventions against what a release's host code asks of Metal."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from mpsmith.audit.releases.wheel.libraries import host_files
from mpsmith.audit.releases.wheel.shipped import shipped_library
from mpsmith.audit.shipped.launch_comparison import (
    Compared,
    compare,
    difference,
    elementwise_calls,
    recorded_calls,
    table,
)
from mpsmith.simulator.air.library import AirLibrary
from mpsmith.simulator.air.signature import BufferArgument, KernelSignature, StructField
from mpsmith.simulator.errors import MachOError
from mpsmith.simulator.macho import HostProcess, arm64_command
from mpsmith.simulator.macho.traces import Bound, Launched, MetalTrace
from mpsmith.simulator.shipped.plan import BlitCopy, KernelLaunch

VALUES = torch.tensor([1, 2], dtype=torch.int32)
CONTENT = {0: b"\xff" * 8, 1: b"\1\0\0\0\2\0\0\0", 2: b"\3\0\0\0" * 3 + b"\7\0\0\0"}


def argument(index: int, name: str, type_name: str = "int", **more: Any) -> BufferArgument:
    size = 16 if type_name == "uint3" else 4
    given = {"access": "read", "by_reference": False} | more
    return BufferArgument(
        index, index, name, type_name, size, size, used=True, address_space=1, indirect=False, **given
    )


SIGNATURE = KernelSignature(
    "kernel",
    (argument(0, "out", access="write"), argument(1, "x"), argument(2, "sizes", "uint3", by_reference=True)),
    *((), (), None, False),
)
LIBRARY: Any = SimpleNamespace(signature=lambda name: SIGNATURE)


def launched(name: str = "kernel", grid: int = 2, content: dict[int, bytes] = CONTENT) -> Launched:
    return Launched(name, (grid, 1, 1), (2, 1, 1), {index: Bound(0, part) for index, part in content.items()})


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        (MetalTrace([launched()]), None),
        (MetalTrace([launched("other")]), "plans kernel; the release launches other"),
        (MetalTrace([]), "plans kernel; the release launches none"),
        (
            MetalTrace([launched(grid=3)]),
            "plans grid and group ((2, 1, 1), (2, 1, 1)); the release has ((3, 1, 1), (2, 1, 1))",
        ),
        (MetalTrace([launched()], copied=[8]), "plans copies of [] bytes; the release makes [8]"),
        (MetalTrace([launched()], filled=[8]), "plans fills of [] bytes; the release makes [8]"),
        (
            MetalTrace([launched(content=CONTENT | {1: bytes(8)})]),
            "plans 0100000002000000 for x; the release has 0000000000000000",
        ),
        (MetalTrace([launched(content={0: b"", 1: CONTENT[1]})]), "the release binds nothing for sizes"),
    ],
)
def test_the_first_difference_is_named(trace: MetalTrace, message: str | None) -> None:
    arguments = {"out": torch.zeros(2, dtype=torch.int32), "x": VALUES, "sizes": [3, 3, 3]}
    assert difference([KernelLaunch("kernel", arguments, (2, 1, 1), (2, 1, 1))], trace, LIBRARY) == message


def test_buffers_written_by_an_earlier_launch_are_not_compared() -> None:
    between = torch.zeros(2, dtype=torch.int32)
    first = KernelLaunch("kernel", {"out": between, "x": VALUES, "sizes": [3, 3, 3]}, (2, 1, 1), (2, 1, 1))
    second = KernelLaunch("kernel", {"out": VALUES.clone(), "x": between, "sizes": [3, 3, 3]}, (2, 1, 1), (2, 1, 1))
    trace = MetalTrace([launched(), launched(content=CONTENT | {1: b"\5" * 8})])
    assert difference([first, second], trace, LIBRARY) is None
    assert difference([second, first], MetalTrace([launched(), launched()]), LIBRARY) is not None


def test_copies_are_compared_by_size() -> None:
    assert difference([BlitCopy(VALUES, VALUES)], MetalTrace(copied=[8]), LIBRARY) is None


def test_the_table_counts_outcomes_and_lists_differences() -> None:
    outcomes = ("agrees", "agrees", "no plan: no kernel", "not recorded: a graph", "plans a; the release launches b")
    lines = table([Compared("abs", "dense", outcome) for outcome in outcomes]).splitlines()
    assert lines[2].split() == ["abs", "2", "1", "1", "1"]
    assert lines[3].split() == ["all", "2", "1", "1", "1"]
    assert lines[-1] == "abs, dense: plans a; the release launches b"


@pytest.fixture(scope="module")
def library() -> AirLibrary:
    try:
        arm64_command()
    except MachOError as error:
        pytest.skip(str(error))
    return AirLibrary(shipped_library("2.13.0"), "2.13.0")


@pytest.mark.network
def test_conventions_plan_the_launches_of_2_13_0(library: AirLibrary) -> None:
    with HostProcess(host_files("2.13.0"), (26, 0), library.names) as process:
        calls = compare(process, library, elementwise_calls())
        ones = process.trace("aten::ones", [2, 3], 6, None, "mps", None)
    assert [(launch.kernel, launch.grid) for launch in ones.launches] == [("fill_scalar_dense_float", (6, 1, 1))]
    print(table(calls))
    assert not [call for call in calls if call.outcome.startswith(("plans ", "not recorded"))]
    assert sum(call.outcome == "agrees" for call in calls) >= 370


@pytest.mark.network
def test_sums_convert_their_input_and_counts_do_not(library: AirLibrary) -> None:
    names = ("sum.dim_IntList", "nansum", "count_nonzero.dim_IntList")
    calls = [call for call in recorded_calls() if call[0] in names]
    assert {call[0] for call in calls} == set(names)
    with HostProcess(host_files("2.13.0"), (26, 0), library.names) as process:
        compared = compare(process, library, calls)
    print(table(compared))
    assert not [call for call in compared if "the release launches" in call.outcome]
    assert sum(call.outcome == "agrees" for call in compared) >= 77


def test_undefined_words_of_a_structure_are_not_compared() -> None:
    in_a_structure = replace(SIGNATURE.buffers[1], fields=(StructField("count", "int", 0, 4, 1),))
    signature = replace(SIGNATURE, buffers=(SIGNATURE.buffers[0], in_a_structure))
    library: Any = SimpleNamespace(signature=lambda name: signature)
    plan = [
        KernelLaunch(
            "kernel",
            {"out": torch.zeros(2, dtype=torch.int32), "x": bytes([1, 0, 0, 0, 0, 0, 0, 0])},
            (2, 1, 1),
            (2, 1, 1),
        )
    ]
    words = {"undefined": b"\1\0\0\0\7\0\0\0", "another": b"\2\0\0\0\0\0\0\0"}
    outcomes = {
        name: difference(plan, MetalTrace([launched(content=CONTENT | {1: content})]), library)
        for name, content in words.items()
    }
    assert outcomes["undefined"] is None
    assert str(outcomes["another"]).startswith("plans 01")
