"""Runs a family's patch on the simulated device and compares each result with the family's own, bit by bit.

A patch that only adds rows has no code: torch's own kernels serve its overloads, which are the CPU's on the simulated
device, and they are compared with the CPU.

    python -m mpsmith.scaffold.patch_comparison FAMILY FOLDER

Each family has its own process: a loaded library cannot be unloaded, and a crash ends only this process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MpsmithError
from .errors import ScaffoldError

if TYPE_CHECKING:
    from ..audit.model.case import Case


@dataclass(frozen=True)
class CaseError:
    """The error of a case: the exception's type and the first line of its message."""

    type: str
    message: str


@dataclass(frozen=True)
class PatchComparison:
    """How the results of a patch compare with those of its family.

    Attributes:
        cases: how many have the family's result.
        errors: how many of them raise the same type of error.
        differences: a line for each other case.
    """

    cases: int
    errors: int
    differences: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether at least one case gave a result, and all are the family's."""
        return self.cases > self.errors and not self.differences


def compare(family: str, folder: Path) -> PatchComparison:
    """Build the patch in a folder, and run the family's cases with the family and with the patch, in a new process.

    Raises ScaffoldError if the patch does not build or the process dies.
    """
    command = [sys.executable, "-m", __name__, family, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        problem = done.stderr.strip().splitlines() or [f"its process ended with {done.returncode}"]
        raise ScaffoldError(problem[-1].removeprefix("error: "))
    data = json.loads(lines[-1])
    return PatchComparison(data["cases"], data["errors"], tuple(data["differences"]))


def main(family: str, folder: Path) -> PatchComparison:
    """Build and compare in this process."""
    os.environ["MPSMITH_KERNELS"] = "off"
    os.environ.setdefault("PYTORCH_ENABLE_MPS_FALLBACK", "1")  # torch reads it while it is imported
    from ..audit.releases.surface.profiles import coverage_profile
    from ..kernels.runtime.registration import use
    from ..simulator import metal
    from ..simulator.device import loading as device
    from ..simulator.objc.loading import load_extension
    from .patch_build import build_patch
    from .targets.upstream.family import Family

    patch = build_patch(folder)
    has_code = any((folder / "tree").rglob("*.mm"))
    device.load(coverage_profile(None))
    metal.install()
    with use(*(kernel.overload for kernel in Family.named(family).patched)):
        # A patch of rows alone has no kernel: on the simulated device the CPU's kernel runs instead of the release's.
        expected = dict(_results(family, patch.overloads, "mps" if has_code else "cpu"))
    load_extension(Path(patch.library))
    return _compared(expected, dict(_results(family, patch.overloads, "mps")))


def _results(family: str, overloads: Sequence[str], device: str) -> Iterator[tuple[str, Any]]:
    """The result of each case by its name: tensors on the CPU, or a CaseError."""
    import torch

    from ..kernels.verification.source import calls_of, cases_of, refused_calls

    operators = {f"aten::{overload.partition('.')[0]}" for overload in overloads}
    for refused in refused_calls(family):
        yield refused.case.title, _result(refused.case, device)
    for call in calls_of(family):
        if operators.isdisjoint(call.operators):
            continue
        for dtype in call.dtypes:
            torch.manual_seed(0)
            for position, case in enumerate(cases_of(call, dtype)):
                name = f"{call.label}, {str(dtype).removeprefix('torch.')} {position}: {case.title}"
                yield name, _result(case, device)


def _result(case: Case, device: str) -> Any:
    import torch

    from ..audit.judging.execution import execute, gradients
    from ..audit.judging.transfer import move
    from ..audit.model.case import seed_generators

    inputs = move(case.args, case.kwargs, device, case.on_host)
    seed_generators(0, "one patch")
    torch.mps.manual_seed(0)
    try:
        ran = execute(case, inputs)
        results = [_copied(value) for value in [*ran.outputs, *ran.tensors]]
        if ran.differentiable and ran.inputs:
            results += [_copied(value) for value in gradients(ran, [torch.ones_like(x) for x in ran.differentiable])]
        torch.mps.synchronize()
        return results
    except Exception as error:  # any exception of an operator is a result to compare
        return CaseError(type(error).__name__, (str(error).splitlines() or [""])[0])


def _copied(value: Any) -> Any:
    import torch

    return value.detach().cpu().clone() if isinstance(value, torch.Tensor) else value


def _compared(expected: dict[str, Any], actual: dict[str, Any]) -> PatchComparison:
    cases = errors = 0
    differences = []
    for name, before in expected.items():
        after: Any = actual.get(name)
        if isinstance(before, CaseError) or isinstance(after, CaseError):
            same_type = getattr(before, "type", "") == getattr(after, "type", "")
            difference = "" if same_type else f"{_described(after)} in place of {_described(before)}"
            errors += not difference
        elif len(before) != len(after or []):
            difference = f"{len(after or [])} results in place of {len(before)}"
        else:
            unequal = [index for index, (x, y) in enumerate(zip(before, after, strict=True)) if not _same(x, y)]
            difference = f"result {unequal[0]} differs" if unequal else ""
        if difference:
            differences.append(f"{name}: {difference}")
        else:
            cases += 1
    return PatchComparison(cases, errors, tuple(differences))


def _described(result: Any) -> str:
    return f"{result.type} ({result.message})" if isinstance(result, CaseError) else "a result"


def _same(left: Any, right: Any) -> bool:
    import torch

    from ..audit.judging.compare import same_bits

    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        return left.dtype == right.dtype and left.shape == right.shape and same_bits(left, right)
    return type(left) is type(right) and bool(left == right)


if __name__ == "__main__":
    try:
        print(json.dumps(asdict(main(sys.argv[1], Path(sys.argv[2])))))
    except MpsmithError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
