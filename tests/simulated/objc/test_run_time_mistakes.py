"""Mistakes of host code that compiles: each raises when it runs, or its values are not the CPU's.

python -m pytest tests/simulated/objc/test_run_time_mistakes.py -m network
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

from mpsmith.audit.model.verdicts import CaseVerdict
from mpsmith.audit.store.store import Store
from mpsmith.simulator.objc.building import BuiltExtension, build_extension
from mpsmith.simulator.objc.loading import load_extension

pytestmark = [pytest.mark.network, pytest.mark.timeout(600)]  # Metal's declarations are fetched: mpsmith check --setup

HERE = Path(__file__).parent
# Said where they are made, or by the next operation.
RAISE = {
    "a second encoder": "already encoding",
    "no pipeline": "before setComputePipelineState",
    "an input that is not bound": "null pointer|nothing is bound",
    "a number that is not bound": "'plus'",
    "a number at the wrong index": "'plus'",
    "too few bytes": "'by'",
    "a thread too many": "'out'|argument 0|argument 1",
    "as many threads as bytes": "'out'|argument 0|argument 1",
    "groups for threads": "'out'|argument 0|argument 1",
    "a group too large": "2048",
    "no endEncoding": "endEncoding",
    "endEncoding twice": "twice",
    "a command after endEncoding": "after endEncoding",
    "waiting before commit": "before commit",
    "no commit": "without commit",
    "commit twice": "twice",
    "encoding after commit": "committed",
    "a kernel for half": "float.*half",
    "a float for an int": "float by value, and the kernel reads integers",
    "a double for a float": "double by value, and the kernel reads numbers of type float",
    "a long for a float": "integers by value, and the kernel reads numbers of type float",
}
DIFFER = (
    "another kernel",
    "buffers in the wrong order",
    "the output for the input",
    "numbers in the wrong order",
    "without its offset",
    "an offset in elements",
    "half the threads",
    "a thread too few",
    "no threads",
    "no dispatch",
    "ignored strides",
    "a copy of the output",
)
ON_STREAM = (
    "dispatch_sync inside its own block",
    "arguments in the wrong order",
    "an argument too few",
    "half the threads",
    "a thread too many",
)
BY, PLUS = 3.0, 0.5


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltExtension:
    return build_extension("mistakes", [HERE / "programs" / "mistakes.mm"], tmp_path_factory.mktemp("mistakes"))


@pytest.fixture(scope="module")
def extension(built: BuiltExtension) -> ModuleType:
    module = load_extension(built.library)
    assert module is not None
    return module


def outcome(launch: Callable[..., torch.Tensor], mistake: str) -> str:
    """What is raised, `other values`, or "" where nothing shows that anything is wrong."""
    values = (torch.arange(70 * 4, dtype=torch.float32) + 1).reshape(70, 4)
    given = values.to("mps")[2:]  # with an offset
    expected = values[2:] * BY + PLUS
    if mistake == "ignored strides":
        given, expected = given.t(), expected.t()
    try:
        result = launch(given, BY, PLUS, mistake)
        result = result + 0  # what nothing could be thrown for is raised by the next operator
        torch.mps.synchronize()
    except RuntimeError as error:
        return str(error)
    finally:
        settle()
    return "" if torch.equal(result.cpu(), expected) else "other values"


def settle() -> None:
    """One mistake's trace is not the next one's."""
    for _ in range(2):
        try:
            torch.mps.synchronize()
            torch.ones(1, device="mps") + 1
        except RuntimeError:
            continue


@pytest.mark.parametrize("way", ["scaled", "scaled_on_stream"])
def test_without_a_mistake_the_values_are_right(extension: ModuleType, way: str) -> None:
    assert outcome(getattr(extension, way), "") == ""


@pytest.mark.parametrize("mistake", RAISE)
def test_calls_that_metal_forbids_raise(extension: ModuleType, mistake: str) -> None:
    said = outcome(extension.scaled, mistake)
    assert said
    assert said != "other values"
    assert re.search(RAISE[mistake], said), said
    assert outcome(extension.scaled, "") == "", "the next launch is right again"


def test_zeros_are_zeros_of_every_type(extension: ModuleType) -> None:
    values = torch.arange(4.0, device="mps")
    assert extension.scaled(values, 0, PLUS, "a long for a float").tolist() == [PLUS] * 4


@pytest.mark.parametrize("mistake", DIFFER)
def test_mistakes_that_metal_accepts_give_other_values(extension: ModuleType, mistake: str) -> None:
    assert outcome(extension.scaled, mistake) != ""
    assert outcome(extension.scaled, "") == "", "the next launch is right again"


@pytest.mark.parametrize("mistake", ON_STREAM)
def test_mistakes_on_the_stream_of_torch_are_found(extension: ModuleType, mistake: str) -> None:
    assert outcome(extension.scaled_on_stream, mistake) != ""
    assert outcome(extension.scaled_on_stream, "") == "", "the next launch is right again"


@pytest.mark.parametrize(
    ("mistake", "next_call"),
    [
        ("odd threadgroup memory", ""),
        ("no pipeline", ""),
        ("an exception", "endEncoding.* on a Mac this ends the process"),
    ],
)
def test_an_encoder_that_an_exception_left_open_costs_at_most_one_call(
    extension: ModuleType, mistake: str, next_call: str
) -> None:
    """Metal's own errors end the process on a Mac; after another exception the next encoder does."""
    values = torch.arange(8.0, device="mps")
    with pytest.raises(RuntimeError):
        extension.scaled_with_torch(values, BY, PLUS, mistake)
    if next_call:
        with pytest.raises(RuntimeError, match=next_call):
            extension.scaled_with_torch(values, BY, PLUS, "")
    assert torch.equal(extension.scaled_with_torch(values, BY, PLUS, "").cpu(), values.cpu() * BY + PLUS)


def test_calling_an_unimplemented_torch_function_names_it(extension: ModuleType) -> None:
    said = r"at::mps::MPSAllocatorCallbacksRegistry(?:\[[\w:]+\])?\(\) is not simulated: .*used at .*mistakes\.mm:\d+\)"
    with pytest.raises(RuntimeError, match=said):
        extension.callbacks()


@pytest.mark.parametrize("way", ["the buffer", "storage", "data_ptr as a buffer"])
def test_the_contents_of_a_tensors_buffer_are_its_numbers(extension: ModuleType, way: str) -> None:
    numbers = torch.arange(5.0, device="mps") + 3
    assert extension.first(numbers, way) == 3
    if way != "data_ptr as a buffer":
        assert extension.first(numbers[2:], way) == 5


@pytest.mark.parametrize("way", ["data_ptr", "data_ptr of a type", "an accessor"])
def test_following_data_ptr_on_the_host_ends_the_process_and_names_the_tensor(built: BuiltExtension, way: str) -> None:
    program = f"""
import torch
from pathlib import Path
from mpsmith.simulator.objc.loading import load_extension
extension = load_extension(Path({str(built.library)!r}))
print(extension.first(torch.arange(6.0), {way!r}), flush=True)
print(extension.first(torch.arange(6.0, device="mps")[2:], {way!r}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"MPSMITH_SIMULATE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout) == (-signal.SIGSEGV, "0.0\n"), done.stderr
    assert "the host follows data_ptr() of a tensor on mps (Float of shape [4])" in done.stderr


def test_an_encoder_of_torch_that_was_ended_is_found_at_the_next_launch(extension: ModuleType) -> None:
    """Nothing on the stream works from then on (on a Mac the process ends): this is the last of its process."""
    values = torch.ones(4, device="mps")
    extension.scaled_on_stream(values, BY, PLUS, "ending torch's encoder")
    with pytest.raises(RuntimeError, match="endEncoding"):
        extension.scaled_on_stream(values, BY, PLUS, "")


def test_a_crash_in_an_extension_costs_an_audit_one_case(built: BuiltExtension, tmp_path: Path) -> None:
    place = tmp_path / "store.sqlite"
    words = ["audit", "--device", "simulated", "--store", str(place), "--workers", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "mpsmith", *words, "--import", "crashing_extension_cases", "--ops", "crash"],
        env=os.environ | {"CRASHING_EXTENSION": str(built.library), "PYTHONPATH": str(HERE)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with Store.open(place) as store:
        cases = list(store.cases(store.latest_run().id, "g.operator = ?", ("crash",)))
    verdicts = {case.position: case.outcome.verdict for case in cases}
    assert verdicts == dict.fromkeys((0, 1, 3, 4), CaseVerdict.PASSED) | {2: CaseVerdict.CRASH}
    assert "SIGSEGV" in next(case.outcome.message for case in cases if case.position == 2)
