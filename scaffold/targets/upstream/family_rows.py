"""Which rows of native_functions.yaml a family's kernels need, and under which names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....simulator.upstream.operations import defines
from ...errors import ScaffoldError
from .yaml_rows import rows_by_overload


@dataclass(frozen=True)
class FamilyRows:
    """The row of each overload that the family serves.

    Attributes:
        kernels: the overloads that get a row, with the kernel that it names: their own, or the one that all
            backends share.
        native: the overloads that have a row for MPS already.
        composed: the overloads that call others and take no row.
    """

    kernels: Mapping[str, str]
    native: tuple[str, ...]
    composed: tuple[str, ...]

    @property
    def shared(self) -> tuple[str, ...]:
        """The overloads whose kernel is shared with other backends."""
        return tuple(name for name, kernel in self.kernels.items() if kernel not in own_names(name))


def own_names(overload: str) -> tuple[str, str]:
    """The possible names of an overload's own kernel; the second is used if the first is taken."""
    identifier = overload.replace(".", "_")
    return f"{identifier}_mps", f"{identifier}_metal"


def planned_rows(yaml_text: str, overloads: Sequence[str], host: str | None) -> FamilyRows:
    """The rows for a family's overloads.

    `host`: its host code, which defines kernels or fills the dispatch stubs of shared ones; None if it has none.
    Raises ScaffoldError for an overload that neither of them serves.
    """
    kernels: dict[str, str] = {}
    native: list[str] = []
    composed: list[str] = []
    for overload, by_key in rows_by_overload(yaml_text, list(overloads)).items():
        if "MPS" in by_key:
            native.append(overload)
        elif not by_key or (_is_composed(by_key) and _own(overload, host) is None):
            composed.append(overload)
        else:
            kernels[overload] = _kernel(overload, by_key, host, yaml_text)
    return FamilyRows(kernels, tuple(native), tuple(composed))


def _is_composed(by_key: Mapping[str, str]) -> bool:
    """Whether other operators compute it: false if backends have their own kernels."""
    return any(key.startswith("Composite") for key in by_key)


def _own(overload: str, host: str | None) -> str | None:
    return next((name for name in own_names(overload) if host and defines(host, name)), None)


def _kernel(overload: str, by_key: Mapping[str, str], host: str | None, yaml_text: str) -> str:
    if own := _own(overload, host):
        return own
    of_cpu = by_key.get("CPU")
    shared = of_cpu if by_key.get("CUDA") == of_cpu else None
    if shared and ((host and "REGISTER_DISPATCH(" in host) or _calls_a_native_form(overload, yaml_text)):
        return shared
    wanted = f"a dispatch stub of {shared}, or {own_names(overload)[0]}" if shared else own_names(overload)[0]
    if host is None:
        raise ScaffoldError(f"{overload} needs host code in PyTorch's idiom: {wanted}")
    raise ScaffoldError(f"{overload}: the host code has no {wanted}")


def _calls_a_native_form(overload: str, yaml_text: str) -> bool:
    """Whether a shared in-place kernel only calls an out form that has a row for MPS."""
    name = overload.partition(".")[0]
    if not name.endswith("_") or "." in overload:
        return False
    out = f"{name.removesuffix('_')}.out"
    try:
        return "MPS" in rows_by_overload(yaml_text, [out])[out]
    except ScaffoldError:
        return False
