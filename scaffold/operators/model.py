"""The operator to scaffold: every overload with its schema and how it dispatches on mps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from torchgen.model import Argument, BaseTy, BaseType, FunctionSchema, ListType, OptionalType, Return, SchemaKind, Type

from ...audit.releases.surface.native_functions import NativeFunction
from ...audit.releases.surface.overloads import Dispatch, Overload

FORMS = {
    SchemaKind.functional: "functional",
    SchemaKind.inplace: "in-place",
    SchemaKind.out: "out",
    SchemaKind.mutable: "mutable",
    SchemaKind.scratch: "scratch",
}


@dataclass(frozen=True)
class OverloadModel:
    """One overload: its yaml entry, its schema as torchgen parsed it, and how it dispatches on mps."""

    function: NativeFunction
    schema: FunctionSchema
    surface: Overload

    @property
    def name(self) -> str:
        """Without namespace: `mode.values`."""
        return self.function.name

    @property
    def overload(self) -> str:
        """The overload's own name, `values`; `default` if it has none."""
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
        """Whether torch has a kernel for it on mps."""
        return self.surface.dispatch.has_kernel

    @property
    def needs_kernel(self) -> bool:
        """Whether this overload needs its own kernel: it is neither composite nor a structured delegate."""
        return not self.surface.declared.is_composite and self.function.structured_delegate is None

    @property
    def arguments(self) -> Sequence[Argument]:
        """Every argument in the order of the schema, outputs included."""
        return tuple(self.schema.arguments.flat_all)

    @property
    def inputs(self) -> Sequence[Argument]:
        """The arguments that are not outputs."""
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
    def required_tensors(self) -> Sequence[Argument]:
        """The inputs that are one tensor and have no default."""
        return [argument for argument in self.tensors if str(argument.type) == "Tensor" and argument.default is None]

    @property
    def text(self) -> str:
        """The schema as text, `aten::mode(Tensor self, ...) -> ...`."""
        return f"aten::{self.function.schema}"


@dataclass(frozen=True)
class OperatorModel:
    """An operator of one release of torch with all overloads that a kernel may serve.

    `stem` names its files and modules: `fused_adagrad` for `_fused_adagrad_`, and `svd_private` for a `_svd` beside a
    public `svd`. `relatives` are the overloads of its in-place or functional variant, such as `add_.Tensor` for `add`.
    """

    name: str
    stem: str
    release: str
    overloads: tuple[OverloadModel, ...]
    relatives: tuple[str, ...] = ()

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
        """The overloads to write kernels for: the missing ones, or all that have their own kernels if none is missing.

        Overloads that share the kernel of another (structured delegates) and composite ones need none, except an out
        form that was written by hand beside a missing functional form: that of `mode` refuses mps.
        """
        own = [overload for overload in self.overloads if overload.needs_kernel]
        missing = [overload for overload in own if lacks_kernel(overload.surface)]
        signatures = {overload.schema.signature() for overload in missing if overload.form == "functional"}
        missing += [
            overload
            for overload in self.overloads
            if overload.form == "out" and overload not in own and overload.schema.signature() in signatures
        ]
        return tuple(missing or own)

    @cached_property
    def delegates(self) -> tuple[OverloadModel, ...]:
        """The overloads that call one of `kernels` by themselves."""
        names = {overload.name for overload in self.kernels}
        return tuple(overload for overload in self.overloads if overload.function.structured_delegate in names)

    @property
    def is_reached_by_samples(self) -> bool:
        """Whether calls of the functional form can reach a kernel; not if it is a composite of other operators.

        An explicit composite calls its own out form.
        """
        functional = [overload for overload in self.overloads if overload.form != "out"]
        served = {overload.name for overload in (*self.kernels, *self.delegates)}
        return any(
            overload.name in served
            or not overload.surface.declared.is_composite
            or any(key.startswith("CompositeExplicit") for key in overload.function.dispatch)
            for overload in functional
        )

    @property
    def structured(self) -> bool:
        """Whether an out kernel serves all overloads, with a shared meta function."""
        return any(overload.function.structured for overload in self.kernels)

    @property
    def tags(self) -> frozenset[str]:
        """The tags of all overloads."""
        return frozenset(tag for overload in self.overloads for tag in overload.function.tags)


def lacks_kernel(overload: Overload) -> bool:
    """Whether a call of the overload on mps falls back or fails."""
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
