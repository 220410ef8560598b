"""The operator to scaffold: every overload with its parsed schema, from the native_functions.yaml of a release.

Parsing is torchgen's, so that what PyTorch's build accepts is what is accepted here; torch itself is not imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from torchgen.model import Argument, BaseTy, BaseType, FunctionSchema, ListType, OptionalType, Return, SchemaKind, Type

from ...audit.surface import installed_surface, native_functions, surface_of
from ...audit.surface.native_functions import NativeFunction
from ...audit.surface.overloads import Dispatch, Overload, Surface
from ...audit.surface.reachability import Unreachable
from ...near_names import near
from ...torch_release import base_version
from ..errors import ScaffoldError

FORMS = {
    SchemaKind.functional: "functional",
    SchemaKind.inplace: "in-place",
    SchemaKind.out: "out",
    SchemaKind.mutable: "mutable",
    SchemaKind.scratch: "scratch",
}


@dataclass(frozen=True)
class OverloadModel:
    """One overload: what the yaml says, the schema as torchgen parsed it, and how it dispatches on mps."""

    function: NativeFunction
    schema: FunctionSchema
    surface: Overload

    @property
    def name(self) -> str:
        """Without namespace: `mode.values`."""
        return self.function.name

    @property
    def overload(self) -> str:
        """The overload's own name, `values`; `default` where it has none."""
        return self.name.partition(".")[2] or "default"

    @property
    def identifier(self) -> str:
        """A name for C++ and Python: `mode_values`; what `at::_ops` calls the overload."""
        return self.name.replace(".", "_")

    @property
    def form(self) -> str:
        """`functional`, `in-place`, `out`, `mutable` or `scratch`."""
        return FORMS[self.schema.kind()]

    @property
    def has_kernel(self) -> bool:
        """Whether torch has a kernel of its own for it on mps."""
        return self.surface.dispatch.has_kernel

    @property
    def needs_kernel(self) -> bool:
        """Whether registering this overload is what makes a call work: it shares no kernel of another overload."""
        return not self.surface.declared.is_composite and self.function.structured_delegate is None

    @property
    def arguments(self) -> Sequence[Argument]:
        """Every argument in the order of the schema, outputs included."""
        return tuple(self.schema.arguments.flat_all)

    @property
    def inputs(self) -> Sequence[Argument]:
        """The arguments that are no outputs."""
        return [argument for argument in self.arguments if argument not in self.outputs]

    @property
    def outputs(self) -> Sequence[Argument]:
        """The out arguments."""
        return tuple(self.schema.arguments.out)

    @property
    def written(self) -> Sequence[Argument]:
        """The arguments that the overload writes to: outputs, or the tensor of an in-place form."""
        return [argument for argument in self.arguments if argument.is_write]

    @property
    def returns(self) -> Sequence[Return]:
        """What the overload returns."""
        return tuple(self.schema.returns)

    @property
    def tensors(self) -> Sequence[Argument]:
        """The inputs that are tensors, optional ones included."""
        return [argument for argument in self.inputs if is_tensor(argument.type)]

    @property
    def text(self) -> str:
        """The schema as text, `aten::mode(Tensor self, ...) -> ...`."""
        return f"aten::{self.function.schema}"


@dataclass(frozen=True)
class OperatorModel:
    """An operator of one release of torch with all overloads that a kernel may serve.

    `stem` names its files and modules: `fused_adagrad` for `_fused_adagrad_`, and `svd_private` for a `_svd` beside a
    public `svd`.
    """

    name: str
    stem: str
    release: str
    overloads: tuple[OverloadModel, ...]

    @property
    def full_name(self) -> str:
        """With its namespace: `aten::mode`."""
        return f"aten::{self.name}"

    @property
    def camel(self) -> str:
        """A name for C++ files, as PyTorch names them: `FusedAdagrad`."""
        return "".join(word[:1].upper() + word[1:] for word in self.stem.split("_"))

    @cached_property
    def kernels(self) -> tuple[OverloadModel, ...]:
        """The overloads to write kernels for: the missing ones, or all with kernels of their own where none is missing.

        Overloads that share the kernel of another (structured delegates) and composite ones need none.
        """
        own = [overload for overload in self.overloads if overload.needs_kernel]
        missing = [overload for overload in own if _lacks_kernel(overload.surface)]
        return tuple(missing or own)

    @cached_property
    def delegates(self) -> tuple[OverloadModel, ...]:
        """The overloads that call one of `kernels` by themselves."""
        names = {overload.name for overload in self.kernels}
        return tuple(overload for overload in self.overloads if overload.function.structured_delegate in names)

    @property
    def structured(self) -> bool:
        """Whether an out kernel serves all overloads, with a shared meta function."""
        return any(overload.function.structured for overload in self.kernels)

    @property
    def tags(self) -> frozenset[str]:
        """The tags of all overloads."""
        return frozenset(tag for overload in self.overloads for tag in overload.function.tags)

    @property
    def has_backward_formula(self) -> bool:
        """Whether PyTorch can differentiate an overload of it."""
        return any(overload.surface.has_autograd_formula for overload in self.overloads)


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

    def missing(self) -> list[str]:
        """Operators with a reachable overload that lacks a kernel, in the order of their names."""
        names = {
            overload.operator.removeprefix("aten::")
            for overload in self.surface.overloads
            if overload.reachable and _lacks_kernel(overload)
        }
        return sorted(name for name in names if self.operator(name).kernels)

    def serving(self, operator: OperatorModel) -> OperatorModel:
        """The operator whose kernel serves this one: itself, or the one that it shares a structured kernel with.

        Raises ScaffoldError for an operator that is composed of others altogether.
        """
        if operator.kernels:
            return operator
        delegates = [overload.function.structured_delegate for overload in operator.overloads]
        for delegate in delegates:
            if delegate:
                return self.operator(delegate)
        raise ScaffoldError(
            f"{operator.full_name} is composed of other operators and takes no kernel of its own; "
            f"find out which of them is missing with: mpsmith surface {operator.full_name}"
        )

    def operator(self, name: str) -> OperatorModel:
        """An operator by its name, with or without `aten::`; an overload's name gives its operator.

        Raises ScaffoldError with near names when there is none.
        """
        bare = name.removeprefix("aten::").partition(".")[0]
        if bare not in self.by_operator:
            if "::" in bare:
                raise ScaffoldError(f"{name} is not an operator of aten; only those can be scaffolded")
            raise ScaffoldError(f"torch {self.release} has no operator aten::{bare}{near(bare, self.by_operator)}")
        by_name = self.surface.by_name
        models = tuple(
            OverloadModel(function, FunctionSchema.parse(function.schema), by_name[f"aten::{function.name}"])
            for function in self.by_operator[bare]
        )
        return OperatorModel(bare, self._stem(bare), self.release, models)

    def _stem(self, name: str) -> str:
        plain = name.strip("_")
        if name.endswith("_") and name.removesuffix("_") in self.by_operator:
            return f"{plain}_inplace"
        return f"{plain}_private" if name.startswith("_") and plain in self.by_operator else plain

    def relatives(self, operator: OperatorModel) -> tuple[str, ...]:
        """The overloads of the operator's in-place or functional twin: `add_.Tensor` and so on for `add`."""
        name = operator.name
        twin = name.removesuffix("_") if name.endswith("_") and not name.endswith("__") else f"{name}_"
        return tuple(function.name for function in self.by_operator.get(twin, []))


def installed() -> Source:
    """The operators of the installed torch; imports no torch."""
    path = native_functions.installed_path()
    return Source(installed_surface(), tuple(native_functions.parse(path.read_bytes(), str(path))))


def of_yaml(text: bytes, release: str) -> Source:
    """The operators of a release from the text of its native_functions.yaml."""
    source = f"native_functions.yaml of torch {release}"
    return Source(surface_of(text, None, release, source), tuple(native_functions.parse(text, source)))


def require_gap(operator: OperatorModel, native_since: str | None) -> None:
    """Raise ScaffoldError unless the operator is one that users of mps miss: what it is instead, and since when."""
    lacking = [overload for overload in operator.overloads if _lacks_kernel(overload.surface)]
    if not lacking:
        raise ScaffoldError(f"{_why_not_missing(operator, native_since)}; --force scaffolds a kernel all the same")
    unreachable = [one.surface.reach for one in lacking if isinstance(one.surface.reach, Unreachable)]
    if len(unreachable) == len(lacking):
        reason = unreachable[0].reason
        raise ScaffoldError(
            f"no user of an mps device can reach {operator.full_name}: it {reason}; --force scaffolds it all the same"
        )


def _why_not_missing(operator: OperatorModel, native_since: str | None) -> str:
    dispatches = {overload.surface.dispatch for overload in operator.overloads}
    if any(dispatch.has_kernel for dispatch in dispatches):
        since = f" since torch {native_since}" if native_since else ""
        return f"{operator.full_name} has native kernels on mps{since}"
    if dispatches == {Dispatch.MISSING_EVERYWHERE}:
        return f"{operator.full_name} has no kernel for the CPU either: there is nothing to compare a kernel with"
    return f"{operator.full_name} is composed of other operators and needs no kernel of its own"


def _lacks_kernel(overload: Overload) -> bool:
    return overload.dispatch in (Dispatch.MISSING, Dispatch.ALWAYS_FALLS_BACK)


def is_tensor(kind: Type) -> bool:
    """Whether an argument of this type is a tensor, optional or not."""
    inner = kind.elem if isinstance(kind, OptionalType) else kind
    return isinstance(inner, BaseType) and inner.name is BaseTy.Tensor


def is_optional_tensor(argument: Argument) -> bool:
    """Whether the argument is a tensor that may be left out."""
    return isinstance(argument.type, OptionalType) and is_tensor(argument.type)


def is_tensor_list(kind: Type) -> bool:
    """Whether an argument of this type is a list of tensors."""
    inner = kind.elem if isinstance(kind, OptionalType) else kind
    return isinstance(inner, ListType) and is_tensor(inner.elem)


def base_types(kind: Type) -> Iterable[BaseTy]:
    """The types that a type is made of, inside lists and optionals."""
    while isinstance(kind, OptionalType | ListType):
        kind = kind.elem
    if isinstance(kind, BaseType):
        yield kind.name


def of_wheel(folder: Path, release: str) -> Source:
    """The operators of a release from the kept members of its wheel (`toolchain.torch_folder`)."""
    from ..proof.toolchain import NATIVE_FUNCTIONS

    return of_yaml((folder / NATIVE_FUNCTIONS).read_bytes(), release)
