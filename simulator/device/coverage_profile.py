"""The operators with an mps kernel in a release of PyTorch: data for the simulated device."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ..errors import SimulatorError

_NAME_SETS = ("native", "sparse", "always_fallback")


@dataclass(frozen=True)
class CoverageProfile:
    """The mps coverage of a release.

    Overloads are named as in native_functions.yaml, without a namespace: `add.Tensor`, `softshrink`, `mode.values`.

    Attributes:
        release: the PyTorch version the profile describes, e.g. "2.13.0".
        native: overloads with an MPS kernel, including structured delegates.
        sparse: overloads with a SparseMPS kernel.
        always_fallback: overloads that the backend runs on the CPU whatever PYTORCH_ENABLE_MPS_FALLBACK is.
    """

    release: str
    native: frozenset[str]
    sparse: frozenset[str]
    always_fallback: frozenset[str]

    def to_json(self, path: str | Path) -> None:
        """Write the profile to `path`, with sorted names, so that diffs of releases are readable."""
        data: dict[str, object] = {"release": self.release}
        data.update({name: sorted(getattr(self, name)) for name in _NAME_SETS})
        Path(path).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def from_json(cls, path: str | Path) -> CoverageProfile:
        """Read a profile that `to_json` wrote.

        Raises:
            SimulatorError: the file cannot be read, is not JSON, or is not a coverage profile.
        """
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise SimulatorError(f"cannot read the coverage profile {path}: {error.strerror}") from error
        except ValueError as error:
            raise SimulatorError(f"{path} is not a JSON file: {error}") from error
        problem = _problem_with(data)
        if problem:
            raise SimulatorError(f"{path} is not a coverage profile: {problem}")
        return cls(data["release"], *(frozenset(data[name]) for name in _NAME_SETS))


def _problem_with(data: object) -> str | None:
    if not isinstance(data, dict):
        return "it should hold one JSON object"
    expected = {"release", *_NAME_SETS}
    if set(data) != expected:
        return f"its keys should be {', '.join(sorted(expected))}, not {', '.join(sorted(data)) or 'none'}"
    if not isinstance(data["release"], str):
        return "release should be a string"
    for name in _NAME_SETS:
        names = data[name]
        if not isinstance(names, list) or not all(isinstance(overload, str) for overload in names):
            return f"{name} should be a list of overload names"
    return None
