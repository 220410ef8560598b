"""Runs a family's extension on the simulated device, and compares each result with what the family gives, bit by bit.

The extension has the host code, Metal and registrations of the family's patch. A patch of rows alone has no code:
torch's own kernels answer, which are the CPU's there, and it is compared with the CPU.

    python -m mpsmith.scaffold.patch_running FAMILY FOLDER OVERLOADS

One process a family: a library that was loaded stays, and one that crashes takes its process with it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MpsmithError
from .building.subject import SETUP
from .errors import ScaffoldError

if TYPE_CHECKING:
    from ..audit.model.case import Case
    from .targets.upstream.family import FamilyPatch

_YAML = "native_functions.yaml"


@dataclass(frozen=True)
class Failed:
    """A case that raised: the type of the exception, and its first line."""

    type: str
    message: str


@dataclass(frozen=True)
class PatchRun:
    """What running a patch gave.

    Attributes:
        cases: how many gave what the family gives.
        errors: how many of them are errors of the same type.
        differences: what else there was, a line each.
        answered: the overloads that the compiled kernels answer.
    """

    cases: int
    errors: int
    differences: tuple[str, ...]
    answered: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether anything ran, and everything came out as the family has it."""
        return self.cases > self.errors and not self.differences


def run(patch: FamilyPatch, folder: Path) -> PatchRun:
    """Build a family, and run its cases with both, in a process of its own.

    `folder`: holds the family's extension; of rows alone it gets their yaml.
    Raises ScaffoldError when it does not build, or when its process dies.
    """
    if not patch.host:
        (folder / _YAML).parent.mkdir(parents=True, exist_ok=True)
        (folder / _YAML).write_text(patch.native_functions, encoding="utf-8")
    overloads = ",".join(patch.rows.kernels)
    words = [sys.executable, "-m", f"{__package__}.patch_running", patch.family, str(folder), overloads]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        said = done.stderr.strip().splitlines() or [f"its process ended with {done.returncode}"]
        raise ScaffoldError(said[-1].removeprefix("error: "))
    data = json.loads(lines[-1])
    return PatchRun(data["cases"], data["errors"], tuple(data["differences"]), tuple(data["answered"]))


def main(family: str, folder: Path, overloads: list[str]) -> PatchRun:
    """Build and compare in this process."""
    os.environ["MPSMITH_KERNELS"] = "off"
    os.environ.setdefault("PYTORCH_ENABLE_MPS_FALLBACK", "1")  # torch reads it while it is imported
    from ..audit.releases.surface.profiles import coverage_profile
    from ..kernels.runtime import catalog
    from ..kernels.runtime.registration import use
    from ..simulator import metal
    from ..simulator.device import loading as device
    from ..simulator.objc.loading import load_extension
    from .targets.upstream.family import in_patches

    has_code = (folder / SETUP).is_file()
    library = _extension(folder) if has_code else _rows_alone(family, folder, overloads)
    device.load(coverage_profile(None))
    metal.install()
    kernels = [kernel.overload for kernel in catalog.family(family) if in_patches(kernel)]
    with use(*kernels):
        # Rows alone bring no kernel: on the simulated device the CPU's stands in for the release's own.
        expected = dict(_results(family, overloads, "mps" if has_code else "cpu"))
    load_extension(library)
    found = dict(_results(family, overloads, "mps"))
    return _compared(expected, found, tuple(f"aten::{overload}" for overload in overloads))


def _extension(folder: Path) -> Path:
    """The library of the package in a folder, built as its setup.py says."""
    from .building.simulated import build
    from .building.subject import subject_at

    (built,) = build(subject_at(folder))
    return built.library


def _rows_alone(family: str, folder: Path, overloads: list[str]) -> Path:
    """A library that registers torch's own kernels for rows."""
    from ..simulator.upstream.building import build_one
    from ..simulator.upstream.registrations import MpsYaml
    from .release_files import files_of

    operators = {overload.partition(".")[0] for overload in overloads}
    yaml = MpsYaml((folder / _YAML).read_text("utf-8"), files_of(None).tags, operators)
    built = build_one(family, None, overloads, yaml)
    if not built.built:
        raise ScaffoldError(f"{family} does not build: {built.problem}")
    return Path(built.library)


def _results(family: str, overloads: list[str], device: str) -> Iterator[tuple[str, Any]]:
    """What each case gives, by its name: tensors on the CPU, or the type of the error."""
    import torch

    from ..audit.model.case import Case
    from ..kernels.verification.source import calls_of, cases_of, refused_calls

    operators = {f"aten::{overload.partition('.')[0]}" for overload in overloads}
    for refused in refused_calls(family):
        case = Case(refused.call, refused.arguments)
        yield f"refused: {refused.title}", _result(case, device)
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
        found = [_copied(value) for value in [*ran.outputs, *ran.tensors]]
        if ran.differentiable and ran.inputs:
            found += [_copied(value) for value in gradients(ran, [torch.ones_like(x) for x in ran.differentiable])]
        torch.mps.synchronize()
        return found
    except Exception as error:  # whatever an operator raises is its answer
        return Failed(type(error).__name__, (str(error).splitlines() or [""])[0])


def _copied(value: Any) -> Any:
    import torch

    return value.detach().cpu().clone() if isinstance(value, torch.Tensor) else value


def _compared(expected: dict[str, Any], found: dict[str, Any], answered: tuple[str, ...]) -> PatchRun:
    cases = errors = 0
    differences = []
    for name, before in expected.items():
        after: Any = found.get(name)
        if isinstance(before, Failed) or isinstance(after, Failed):
            difference = "" if _type(before) == _type(after) else f"{_word(after)} in place of {_word(before)}"
            errors += not difference
        elif len(before) != len(after or []):
            difference = f"{len(after or [])} results in place of {len(before)}"
        else:
            unequal = [place for place, (x, y) in enumerate(zip(before, after, strict=True)) if not _same(x, y)]
            difference = f"result {unequal[0]} differs" if unequal else ""
        if difference:
            differences.append(f"{name}: {difference}")
        else:
            cases += 1
    return PatchRun(cases, errors, tuple(differences), answered)


def _type(result: Any) -> str:
    return result.type if isinstance(result, Failed) else ""


def _word(result: Any) -> str:
    return f"{result.type} ({result.message})" if isinstance(result, Failed) else "a result"


def _same(left: Any, right: Any) -> bool:
    import torch

    from ..audit.judging.compare import same_bits

    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        return left.dtype == right.dtype and left.shape == right.shape and same_bits(left, right)
    return type(left) is type(right) and bool(left == right)


if __name__ == "__main__":
    try:
        name, place, wanted = sys.argv[1:4]
        print(json.dumps(asdict(main(name, Path(place), wanted.split(",")))))
    except MpsmithError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
