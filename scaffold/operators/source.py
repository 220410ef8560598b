"""The source of operators: the native_functions.yaml of a release, read once, with the surface that it declares.

torchgen parses it, as in PyTorch's build; torch is not imported.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from torchgen.model import FunctionSchema

from ...audit.answers.answer import known_names
from ...audit.releases.surface import classified, installed_surface, native_functions
from ...audit.releases.surface.native_functions import NativeFunction
from ...audit.releases.surface.overloads import Overload, Surface
from ...errors import MpsmithError
from ...registry.torch_release import base_version
from ..errors import ScaffoldError
from ..release_files import files_of
from .gap import why_not_missing
from .model import OperatorModel, OverloadModel, lacks_kernel


@dataclass(frozen=True)
class Source:
    """The operators of one release: its surface and its yaml."""

    surface: Surface
    functions: tuple[NativeFunction, ...]

    @property
    def release(self) -> str:
        """The release as it is written in file names, `2.13.0`."""
        return base_version(self.surface.release)

    @cached_property
    def by_operator(self) -> dict[str, list[NativeFunction]]:
        """The declared overloads of each operator, by its name without namespace."""
        grouped: dict[str, list[NativeFunction]] = {}
        for function in self.functions:
            grouped.setdefault(function.operator, []).append(function)
        return grouped

    def gaps(self) -> list[OperatorModel]:
        """The operators with a reachable overload that lacks a kernel, in the order of their names."""
        return self._without_kernel(overload for overload in self.surface.overloads if overload.reachable)

    def lacking(self) -> list[OperatorModel]:
        """Every operator with an overload that lacks a kernel, those that no user reaches included."""
        return self._without_kernel(self.surface.overloads)

    def _without_kernel(self, overloads: Iterable[Overload]) -> list[OperatorModel]:
        names = {overload.operator.removeprefix("aten::") for overload in overloads if lacks_kernel(overload)}
        return [operator for name in sorted(names) if (operator := self.operator(name)).kernels]

    def serving(self, operator: OperatorModel) -> OperatorModel:
        """The operator whose kernel computes this one: itself, or the one whose structured kernel it delegates to.

        Raises ScaffoldError if all its overloads are composite.
        """
        if operator.kernels:
            return operator
        delegates = [overload.function.structured_delegate for overload in operator.overloads]
        for delegate in delegates:
            if delegate:
                return self.operator(delegate)
        raise ScaffoldError(why_not_missing(operator))

    def operator(self, name: str) -> OperatorModel:
        """An operator by a name that `mpsmith why` accepts: `aten::mode`, `linalg.svd`; an overload gives its operator.

        Raises ScaffoldError with similar names when there is none.
        """
        bare = name.removeprefix("aten::").partition(".")[0]
        if bare not in self.by_operator:
            if "::" in bare:
                raise ScaffoldError(f"{name} is not an operator of aten; only those can be scaffolded")
            bare = self._called(name.removeprefix("aten::"))
        by_name = self.surface.by_name
        models = tuple(
            OverloadModel(function, schema, by_name[f"aten::{function.name}"])
            for function in self.by_operator[bare]
            if (schema := _parsed(function)) is not None
        )
        if not models:
            raise ScaffoldError(
                f"the installed torchgen cannot read the schemas of aten::{bare} in torch {self.release}: their types "
                "are no longer torch's; scaffold it for the installed release"
            )
        return OperatorModel(bare, self._stem(bare), self.release, models, self._relatives(bare))

    def _called(self, name: str) -> str:
        """The operator that users call `linalg.svd` or `F.softshrink`."""
        try:
            meant = known_names().find(name)
        except MpsmithError as error:
            raise ScaffoldError(str(error)) from None
        if meant.operator not in self.by_operator:
            raise ScaffoldError(f"{meant.shown} is not one operator; `mpsmith why {meant.shown}` says what it lacks")
        return meant.operator

    def _stem(self, name: str) -> str:
        plain = name.strip("_")
        if name.endswith("_") and name.removesuffix("_") in self.by_operator:
            return f"{plain}_inplace"
        return f"{plain}_private" if name.startswith("_") and plain in self.by_operator else plain

    def _relatives(self, name: str) -> tuple[str, ...]:
        """The overloads of the in-place form, or of the functional form of an in-place operator."""
        other_form = name.removesuffix("_") if name.endswith("_") and not name.endswith("__") else f"{name}_"
        return tuple(function.name for function in self.by_operator.get(other_form, []))


def _parsed(function: NativeFunction) -> FunctionSchema | None:
    """The schema; None if it has a type that the installed torchgen does not know, such as Dimname since torch 2.13."""
    try:
        return FunctionSchema.parse(function.schema)
    except RuntimeError as error:
        if "unrecognized type" in str(error):
            return None
        raise


def source_of(release: str | None) -> Source:
    """The operators of a release that was set up (`mpsmith check --setup --torch RELEASE`), or of the installed torch.

    Raises ToolchainError when that release was not set up, WheelError for an invalid release.
    """
    files = files_of(release)
    text = files.native_functions.read_bytes()
    if not files.installed:
        return of_yaml(text, files.release)
    functions = native_functions.parse(text, str(files.native_functions))
    return Source(installed_surface(functions), tuple(functions))


def of_yaml(text: bytes, release: str) -> Source:
    """The operators of a release from the text of its native_functions.yaml."""
    source = f"native_functions.yaml of torch {release}"
    functions = native_functions.parse(text, source)
    return Source(classified(functions, None, release, source), tuple(functions))
