"""The argument search: what kills its process costs one call, and what means nothing is not recorded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mpsmith.audit.cases.argument_search.attempts import WANTED, Attempt, attempt_overload, mark, read_journal
from mpsmith.audit.cases.argument_search.engine import Progress, SearchedOverload, search_calls
from mpsmith.audit.cases.argument_search.verification import agree, shapes_agree
from mpsmith.audit.cases.calls.invocation import fingerprint
from mpsmith.audit.cases.calls.recorded_calls import OverloadCalls, RecordedCalls

# Operators with the flaws of some private ones of torch.
PACKAGE = """
import ctypes, os
import torch

library = torch.library.Library("flawed", "DEF")

def define(schema, kernel):
    library.define(schema)
    library.impl(schema.split("(")[0], kernel, "CPU")

def crashing(x, n):
    if n == 0:
        os._exit(7)
    return x + n

def overflowing(x):
    made = torch.empty(4)
    ctypes.memset(made.data_ptr() + 16, 1, 1)  # the byte behind it, which only a checked heap misses
    return made.zero_()

define("sound(Tensor x, float a) -> Tensor", lambda x, a: x * a)
define("uninitialised(Tensor x) -> Tensor", lambda x: torch.empty(x.numel() + 64))
define("crashing(Tensor x, int n) -> Tensor", crashing)
define("overflowing(Tensor x) -> Tensor", overflowing)
define("nowhere(Tensor x) -> Tensor", lambda x: torch.ops.aten._philox_key_split(x, 2))
"""


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, OverloadCalls]:
    folder = tmp_path_factory.mktemp("package")
    (folder / "flawed_operators.py").write_text(PACKAGE)
    sys.path.insert(0, str(folder))  # spawned processes take it over
    try:
        names = ("sound", "uninitialised", "crashing", "overflowing", "nowhere", "absent")
        memory = RecordedCalls("", {})
        reports: list[Progress] = []
        targets = [SearchedOverload(f"flawed::{name}") for name in names]
        for _ in search_calls(targets, memory, 1, reports.append, record=False, imports=["flawed_operators"]):
            pass
    finally:
        sys.path.remove(str(folder))
    assert reports[0].done == reports[0].total == len(names)
    return {name.removeprefix("flawed::"): recorded for name, recorded in memory.overloads.items()}


def test_a_sound_operator_is_learned_with_its_dtypes(searched: dict[str, OverloadCalls]) -> None:
    sound = searched["sound"]
    assert sound.enough
    assert {"float32", "float16", "bfloat16"} <= set(sound.dtypes)
    assert sound.schema
    assert not sound.errors


def test_calls_that_end_the_process_cost_only_themselves(searched: dict[str, OverloadCalls]) -> None:
    assert searched["crashing"].enough
    assert all(call["args"][1] != 0 for call in searched["crashing"].calls)


@pytest.mark.parametrize("name", ["uninitialised", "overflowing"])
def test_results_that_mean_nothing_are_not_remembered(searched: dict[str, OverloadCalls], name: str) -> None:
    assert searched[name].calls == []
    assert "uninitialised memory or it overwrites memory" in searched[name].errors[0]
    assert searched[name].tried > 0


def test_where_no_backend_has_a_kernel_the_refusal_itself_is_remembered(searched: dict[str, OverloadCalls]) -> None:
    nowhere = searched["nowhere"]
    assert nowhere.refused
    assert not nowhere.enough
    assert "Could not run 'aten::_philox_key_split'" in nowhere.errors[0]


def test_an_overload_that_torch_does_not_have_says_so(searched: dict[str, OverloadCalls]) -> None:
    assert searched["absent"].calls == []
    assert "AttributeError" in searched["absent"].errors[0]


def test_unsound_calls_are_not_tried_again(tmp_path: Path) -> None:
    given = [{"args": [{"shape": [n], "dtype": "float32"}], "kwargs": {}, "dtype": "float32"} for n in (2, 3)]
    attempt = Attempt("aten::relu", {"aten::relu": given}, tmp_path / "journal", avoided=frozenset({mark(given[0])}))
    result = attempt_overload(attempt)
    assert len(result.calls) == WANTED
    assert given[1] in result.calls
    assert given[0] not in result.calls
    accepted, last, tried = read_journal(tmp_path / "journal")
    assert (accepted, last) == (result.calls[:-1], mark(result.calls[-1])), "the last one is under suspicion"
    assert tried == result.tried


def test_agreement_is_of_values_but_for_rounding() -> None:
    assert agree(["float32 (1,)", 1.0, float("nan")], ["float32 (1,)", 1.0 + 1e-6, float("nan")])
    assert not agree(["float32 (1,)", 1.0], ["float32 (1,)", 3.4e38])
    assert not agree("raises", "raises")
    assert shapes_agree(["float32 (1,)", 1.0], ["float32 (1,)", 3.4e38])
    assert not shapes_agree(["float32 (1,)", 1.0], ["float32 (2,)", 1.0, 1.0])


# ---- the command


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "mpsmith.audit.cases.argument_search", "--workers", "1", *arguments]


def test_recorded_calls_of_another_torch_and_calls_written_by_hand_are_verified(tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    memory = RecordedCalls.load()
    before = memory.overloads["aten::glu_jvp"]
    changed = memory.overloads["aten::softshrink"]
    by_hand = memory.overloads["aten::lstm.input"].calls[0]
    memory.overloads = {
        "aten::glu_jvp": before,
        "aten::glu_jvp.out": memory.overloads["aten::glu_jvp.out"],
        "aten::softshrink": OverloadCalls([{"args": [], "kwargs": {}, "dtype": "float32"}], ["float32"], schema="0000"),
        "aten::softshrink.out": memory.overloads["aten::softshrink.out"],
        "aten::lstm.input": OverloadCalls([by_hand]),
    }
    memory.torch = "2.12.0"
    memory.save(folder)
    options = ("--ops", "glu_jvp", "--ops", "softshrink.out", "--ops", "lstm.input", "--to", str(folder))
    done = subprocess.run(command(*options), capture_output=True, text=True, check=True, timeout=300)
    assert "the recorded calls are of torch 2.12.0: 3 overloads have the same schema" in done.stderr
    assert done.stdout.startswith("4 overloads: 4 have 3 or more accepted calls")
    after = RecordedCalls.load(folder)
    assert after.torch == "2.13.0"
    assert after.overloads["aten::glu_jvp"] == before
    assert "aten::softshrink" not in after.overloads, "its schema has changed, so its calls are forgotten"
    assert changed.schema == fingerprint("aten::softshrink")
    assert after.overloads["aten::lstm.input"].calls[0] == by_hand
    assert {"float32", "bfloat16"} <= set(after.overloads["aten::lstm.input"].dtypes)


def test_a_pattern_that_matches_nothing_is_an_error(tmp_path: Path) -> None:
    done = subprocess.run(command("--ops", "no_such_*"), capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 2
    assert (
        done.stderr.strip()
        == "error: no reachable overload matches 'no_such_*' (`mpsmith coverage --operators` lists them)"
    )


def test_control_c_keeps_recorded_calls(tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    memory = RecordedCalls.load()
    memory.overloads = {n: OverloadCalls(r.calls[:2], schema=r.schema) for n, r in memory.overloads.items()}
    memory.save(folder)
    arguments = command("--to", str(folder), "--ops", "special_*")  # several batches
    # A shell starts background jobs with SIGINT ignored, and then it would stay ignored here.
    listening = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), "start_new_session": True}
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, **listening) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("searching: "):
                os.killpg(process.pid, signal.SIGINT)
                break
        rest = process.stderr.read()
        assert process.wait(timeout=60) == 130
    assert f"stopped; the calls found so far are in {folder}" in rest
    assert "Traceback" not in rest
    after = RecordedCalls.load(folder)
    assert any(recorded.enough for recorded in after.overloads.values())
