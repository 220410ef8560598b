"""The form of calls in the known-wrong corpus: plain data that YAML can hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StringConstraints, Tag, model_validator
from typing_extensions import TypeAliasType

from ..errors import near

Form = Literal["functional", "out", "in-place", "backward"]
Fill = Literal["randn", "rand", "arange", "zeros", "ones", "integers", "permutation", "well conditioned"]
Dtype = Literal[
    "float32", "float16", "bfloat16", "complex64", "int8", "int16", "int32", "int64", "uint8", "bool"
]  # fmt: skip
MemoryFormat = Literal["contiguous_format", "channels_last", "channels_last_3d"]

NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?|[-+]?inf|nan")
INTEGER = re.compile(r"[-+]?\d+")
WORDS: dict[str, bool] = {"true": True, "false": False}

Value: TypeAlias = "bool | int | float | complex | str | None"


def plain_value(text: str | None) -> Value:
    """The value that a scalar of a case denotes: null, true, 3, 0.5, -inf, 1+2j, or else a string."""
    if text is None or text in WORDS:
        return None if text is None else WORDS[text]
    if INTEGER.fullmatch(text):
        return int(text)
    if NUMBER.fullmatch(text):
        return float(text)
    try:
        return complex(text) if text.endswith("j") else text
    except ValueError:
        return text


class Part(BaseModel):
    """A part of an entry: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class View(Part):
    """One step from a tensor to a view of it; exactly one field is given. Fields have the names of torch's methods.

    Attributes:
        transpose, permute, unsqueeze, expand, reshape: the arguments of the method of that name.
        slice: dimension, start, stop and step, as in `x[start:stop:step]` of that dimension; null for an open end.
        select: dimension and index.
        memory_format: the same values in a different memory format.
        as_strided: shape, strides and storage offset.
        conj, neg: the lazy conjugation or negation.
    """

    transpose: tuple[int, int] | None = None
    permute: tuple[int, ...] | None = None
    slice: tuple[int, int | None, int | None, int] | None = None
    select: tuple[int, int] | None = None
    unsqueeze: int | None = None
    expand: tuple[int, ...] | None = None
    reshape: tuple[int, ...] | None = None
    memory_format: MemoryFormat | None = None
    as_strided: tuple[tuple[int, ...], tuple[int, ...], int] | None = None
    conj: bool | None = None
    neg: bool | None = None

    @model_validator(mode="after")
    def _is_one_step(self) -> View:
        if len(self.model_fields_set) != 1:
            raise ValueError("a view is one step, such as {transpose: [0, 1]}; write several as several items")
        return self

    @property
    def step(self) -> tuple[str, Any]:
        """The name and the value of the field that is given."""
        (name,) = self.model_fields_set
        return name, getattr(self, name)


class TensorInput(Part):
    """A tensor, made on the CPU.

    Attributes:
        shape: of the tensor, before any view; with `values` it may be left out.
        dtype: of the tensor.
        fill: random values from the audit's seed, or a fixed pattern: a word, or a number for all elements.
            "integers" are random ones from 0 up to `below`; "permutation" holds 0 … n-1 in a random order;
            "well conditioned" is a batch of square matrices that are safe to invert.
        below: the limit for "integers".
        values: the elements themselves, nested as the tensor is; with `shape` a flat list that repeats.
        views: the steps that lead from it to the argument, in their order.
        requires_grad: whether its gradient is asked for.
        on_cpu: the argument stays on the CPU, as a scalar tensor may.
    """

    shape: tuple[int, ...] | None = None
    dtype: Dtype = "float32"
    fill: Annotated[str, StringConstraints(pattern=r"\S")] | None = None
    below: int | None = None
    values: list[Any] | None = None
    views: tuple[View, ...] = ()
    requires_grad: bool = False
    on_cpu: bool = False

    @model_validator(mode="after")
    def _can_be_made(self) -> TensorInput:
        if self.values is None and self.shape is None:
            raise ValueError("a tensor needs its shape or its values")
        if self.values is not None and self.fill is not None:
            raise ValueError("a tensor has a fill or values, not both")
        if self.fill is not None and self.fill not in get_args(Fill) and not NUMBER.fullmatch(self.fill):
            words = get_args(Fill)
            raise ValueError(
                f"'{self.fill}' is not a fill: write a number, or one of {', '.join(words)}{near(self.fill, words)}"
            )
        if (self.fill == "integers") != (self.below is not None):
            raise ValueError("the fill 'integers' and its limit 'below' go together")
        return self


class SliceInput(Part):
    """A Python slice, for calls of `torch.Tensor.__getitem__`: start, stop and step, each may be null."""

    slice: tuple[int | None, int | None, int | None]


class TupleInput(Part):
    """A tuple; a plain list stays a list."""

    tuple: list[Argument]


class TorchInput(Part):
    """A constant of torch by its name, such as a dtype or a memory format: {torch: int32}."""

    torch: Annotated[str, StringConstraints(pattern=r"^[a-z]\w*$")]


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return "<list>"
    if isinstance(value, dict):
        tag = next((name for name in ("slice", "tuple", "torch") if list(value) == [name]), "tensor")
        return f"<{tag}>"
    if isinstance(value, TensorInput | SliceInput | TupleInput | TorchInput):
        return f"<{type(value).__name__.removesuffix('Input').lower()}>"
    return "<plain>"


# A named alias, because it refers to itself. The tags appear in pydantic's errors, where `_located` removes them.
Argument = TypeAliasType(
    "Argument",
    Annotated[
        Annotated[TensorInput, Tag("<tensor>")]
        | Annotated[SliceInput, Tag("<slice>")]
        | Annotated[TupleInput, Tag("<tuple>")]
        | Annotated[TorchInput, Tag("<torch>")]
        | Annotated["list[Argument]", Tag("<list>")]
        | Annotated[str | None, Tag("<plain>")],
        Discriminator(_kind),
    ],
)


class KnownCase(Part):
    """One call that went wrong.

    Attributes:
        call: the function, by its name in torch: `torch.where`, `torch.Tensor.scatter_add_`, `torch.ops.aten.topk`.
        args, kwargs: its arguments.
        form: "functional"; "out" writes into `out`; "in-place" changes the first argument, and also compares the memory
            around it in its storage; "backward" compares the gradients of every tensor with `requires_grad`.
        out: the tensors to write into.
        refused: whether the CPU refuses these arguments, so that mps has to refuse them, too.
        memory_gib: the memory that the case needs; with it, it runs only if large cases were requested.
    """

    call: Annotated[str, StringConstraints(pattern=r"^torch(\.\w+)+$")]
    args: tuple[Argument, ...] = ()
    kwargs: dict[str, Argument] = Field(default_factory=dict)
    form: Form = "functional"
    out: tuple[TensorInput, ...] = ()
    refused: bool = False
    memory_gib: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _has_what_its_form_needs(self) -> KnownCase:
        if (self.form == "out") != bool(self.out):
            raise ValueError("the form 'out' and the tensors under 'out' go together")
        if self.form == "in-place" and not (self.args and isinstance(self.args[0], TensorInput)):
            raise ValueError("the form 'in-place' needs a tensor as its first argument")
        if self.form == "backward" and not any(tensor.requires_grad for tensor in self.tensors()):
            raise ValueError("the form 'backward' needs a tensor with requires_grad: true")
        return self

    def tensors(self) -> Iterator[TensorInput]:
        """The tensors among the arguments, in their order."""
        yield from _tensors([*self.args, *self.kwargs.values()])

    @property
    def dtype(self) -> str:
        """The dtype of its first tensor."""
        return next((str(tensor.dtype) for tensor in self.tensors()), "float32")


def _tensors(arguments: list[Any]) -> Iterator[TensorInput]:
    for argument in arguments:
        if isinstance(argument, TensorInput):
            yield argument
        elif isinstance(argument, TupleInput):
            yield from _tensors(argument.tuple)
        elif isinstance(argument, list):
            yield from _tensors(argument)
