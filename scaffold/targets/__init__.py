"""The targets: what a scaffold is generated as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from ..launches.elements import FLOATING_ELEMENTS, METAL_ELEMENTS
from ..launches.launch import Launch
from ..launches.schema_launch import launch_of
from ..operators.kinds import KernelKind
from ..operators.model import OperatorModel, OverloadModel, lacks_kernel
from ..operators.observation import INTEGERS, Observation


class KernelTarget(str, Enum):
    """The form in which a kernel is generated."""

    SHADER = "shader"
    EXTENSION = "extension"
    UPSTREAM = "upstream"


@dataclass(frozen=True)
class Request:
    """The request to generate a kernel.

    Attributes:
        operator: the operator.
        kind: the kind of kernel.
        opinfos: the names of torch's OpInfos that test it.
        observations: of calls on the CPU, by the overload's name.
        references: torch's definition of each overload, by its name.
        cpu_dtypes: the dtypes that these OpInfos call on the CPU.
    """

    operator: OperatorModel
    kind: KernelKind
    opinfos: tuple[str, ...] = ()
    observations: Mapping[str, Observation] = field(default_factory=dict)
    references: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cpu_dtypes: frozenset[str] = frozenset()

    @property
    def family(self) -> list[str]:
        """The operator's overloads and those of its in-place or functional variant, which torchgen groups."""
        return list(dict.fromkeys([*(overload.name for overload in self.operator.overloads), *self.operator.relatives]))

    @property
    def under_test(self) -> list[str]:
        """The overloads whose native kernels the generated tests remove: those that get a kernel here.

        If torch has kernels for all, the in-place or functional variant's as well, because it shares them.
        """
        operator = self.operator
        served = {overload.name for overload in (*operator.kernels, *operator.delegates)}
        if any(lacks_kernel(overload.surface) for overload in operator.overloads):
            return [
                overload.name for overload in operator.overloads if overload.name in served or not overload.has_kernel
            ]
        return self.family

    @property
    def launches(self) -> list[Launch]:
        """The launches of the overloads that get a kernel."""
        launches = []
        for overload in self.operator.kernels:
            launch = launch_of(overload, self.kind, self.observations.get(overload.name))
            launches.append(replace(launch, reference=self.references.get(overload.name, ())))
        # All kernels have the same element types, because the host chooses a kernel by its dtype only.
        integers = [set(launch.integer_elements) for launch in launches]
        shared = [
            metal for metal in METAL_ELEMENTS.values() if integers and all(metal in elements for elements in integers)
        ]
        launches = [replace(launch, elements=(*FLOATING_ELEMENTS, *shared)) for launch in launches]
        # A function is defined before its callers.
        return sorted((_served(launch, launches) for launch in launches), key=lambda launch: bool(launch.served_by))

    def tested_integers(self, *, promotes: bool) -> tuple[str, ...]:
        """The integer dtypes, and bool, that the OpInfos call on the CPU and that the kernels take.

        `promotes`: whether the host of an elementwise kernel converts integers to floats.
        """
        launches = self.launches
        own = {METAL_ELEMENTS[dtype] for dtype in self.cpu_dtypes & METAL_ELEMENTS.keys()}
        takes_all = promotes and all(launch.is_floating_elementwise for launch in launches)
        taken = own if takes_all else own & {*launches[0].elements}
        return tuple(dtype for dtype in INTEGERS if METAL_ELEMENTS[dtype] in taken)

    @property
    def package(self) -> str:
        """The name of the package that an extension is."""
        return f"{self.operator.stem}_mps"

    @property
    def base(self) -> str:
        """The name of the operator's own headers, without the underscore of an in-place form."""
        return base_of(self.operator.kernels[0])


def _served(launch: Launch, launches: Sequence[Launch]) -> Launch:
    """The launch; if another launch computes the same, marked as served by that, so that it needs no kernel."""
    by = next((other for other in launches if other.can_serve(launch)), None)
    if by is None:
        return launch
    return replace(launch, served_by=by.name, served_outputs=tuple(output.name for output in by.overload.outputs))


@dataclass(frozen=True)
class Generated:
    """The files of a scaffold by their path, and the options for the checker."""

    files: dict[str, str]
    registers: dict[str, str]
    arc: bool = True
    include: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()


def base_of(overload: OverloadModel) -> str:
    """The base of an overload's name, as PyTorch names the headers: `put` for `put_`."""
    name = overload.schema.name.name
    return f"__{name.base}__" if name.dunder_method else name.base
