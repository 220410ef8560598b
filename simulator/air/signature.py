"""The arguments of a kernel, from `!air.kernel`, which Apple's compiler writes into every module.

It keeps the names of arguments and of struct members. So a launch can bind by name, and still works when a release
changes the indices of its buffers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, cast

from ..errors import MalformedKernelError
from .metadata import Metadata, NodeReference, Value

Access = Literal["read", "write", "read_write"]

DEVICE, CONSTANT, THREADGROUP = 1, 2, 3
"""Address spaces."""


@dataclass(frozen=True)
class StructField:
    """A member: its offset in bytes, its array length (0: not an array), and its own members if it is a struct."""

    name: str
    type_name: str
    offset: int
    size: int  # of one element
    array_length: int
    is_pointer: bool = False
    fields: tuple[StructField, ...] = ()


@dataclass(frozen=True)
class BufferArgument:
    """A buffer; with address space THREADGROUP it is threadgroup memory, which has separate indices.

    `size` and `alignment` are those of one element (0 for `void`), `type_name` is its name in Metal. An indirect
    buffer holds addresses of other buffers.
    """

    position: int
    index: int
    name: str
    type_name: str
    size: int
    alignment: int
    access: Access
    used: bool
    address_space: int
    by_reference: bool  # it has exactly one element
    indirect: bool
    fields: tuple[StructField, ...] = ()

    @property
    def is_threadgroup(self) -> bool:
        """Whether it is threadgroup memory: a launch passes its length."""
        return self.address_space == THREADGROUP

    @property
    def writable(self) -> bool:
        """Whether the kernel may write to it."""
        return self.access != "read"


@dataclass(frozen=True)
class BuiltinArgument:
    """A builtin value, such as `thread_position_in_grid`."""

    position: int
    kind: str
    name: str
    type_name: str


@dataclass(frozen=True)
class KernelSignature:
    """The arguments of a kernel, and compile options of its module."""

    name: str
    buffers: tuple[BufferArgument, ...]
    threadgroup_buffers: tuple[BufferArgument, ...]
    builtins: tuple[BuiltinArgument, ...]
    max_threads: int | None
    """The largest threadgroup, if the kernel declares it."""
    flush_denormals: bool
    """Whether subnormal floats are flushed to zero."""

    def __contains__(self, name: str) -> bool:
        return self.buffer(name) is not None

    def buffer(self, name: str) -> BufferArgument | None:
        """The buffer of that name, or None."""
        return next((buffer for buffer in self.buffers if buffer.name == name), None)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the buffers, in the order of their indices."""
        return tuple(buffer.name for buffer in self.buffers)

    @property
    def arguments(self) -> tuple[BufferArgument | BuiltinArgument, ...]:
        """All arguments, in the order of the function's parameters."""
        arguments: list[BufferArgument | BuiltinArgument] = [*self.buffers, *self.threadgroup_buffers, *self.builtins]
        return tuple(sorted(arguments, key=lambda argument: argument.position))


def kernel_signature(metadata: Metadata, name: str) -> KernelSignature:
    """The signature of `name`, the only kernel of a module.

    Raises:
        MalformedKernelError: `!air.kernel` is missing or invalid.
    """
    kernels = list(metadata.named("air.kernel"))
    if len(kernels) != 1:
        raise MalformedKernelError(f"it has {len(kernels)} kernels (!air.kernel), not one")
    rows = kernels[0][2] if len(kernels[0]) > 2 else None
    arguments = [_argument(metadata, metadata.node(row)) for row in metadata.node(rows)]
    buffers = [argument for argument in arguments if isinstance(argument, BufferArgument)]
    plain = sorted((b for b in buffers if not b.is_threadgroup), key=lambda b: b.index)
    threadgroup = sorted((b for b in buffers if b.is_threadgroup), key=lambda b: b.index)
    for group in (plain, threadgroup):
        _check_apart(group)
    if sorted(argument.position for argument in arguments) != list(range(len(arguments))):
        raise MalformedKernelError("its arguments are not numbered from 0 on")
    options = {value for node in metadata.named("air.compile_options") for value in node}
    return KernelSignature(
        name=name,
        buffers=tuple(plain),
        threadgroup_buffers=tuple(threadgroup),
        builtins=tuple(argument for argument in arguments if isinstance(argument, BuiltinArgument)),
        max_threads=_max_threads(metadata, kernels[0][3:]),
        flush_denormals="air.compile.denorms_disable" in options,
    )


def _check_apart(buffers: list[BufferArgument]) -> None:
    indices = [buffer.index for buffer in buffers]
    names = [buffer.name for buffer in buffers]
    if len(set(indices)) != len(indices):
        raise MalformedKernelError(f"two of its buffers have one index ({indices})")
    if len(set(names)) != len(names):
        raise MalformedKernelError(f"two of its buffers have one name ({', '.join(names)})")
    if any(not 0 <= index < 31 for index in indices):
        raise MalformedKernelError(f"a buffer's index is outside of Metal's range ({indices})")


def _max_threads(metadata: Metadata, properties: tuple[Value, ...]) -> int | None:
    for value in properties:
        if isinstance(value, NodeReference):
            node = metadata.node(value)
            if node[:1] == ("air.max_work_group_size",) and len(node) > 1 and isinstance(node[1], int):
                return node[1]
    return None


# The number of values after a key; 1 for other keys.
_VALUES = {
    **dict.fromkeys(("air.read", "air.write", "air.read_write", "air.arg_unused"), 0),
    "air.location_index": 2,  # the index, and how many indices it takes
}


def _properties(values: tuple[Value, ...]) -> dict[str, tuple[Value, ...]]:
    """The properties of an argument: values by key."""
    properties: dict[str, tuple[Value, ...]] = {}
    at = 0
    while at < len(values):
        key = values[at]
        if not isinstance(key, str):
            raise MalformedKernelError(f"an argument's property has no name ({key})")
        count = _VALUES.get(key, 1)
        properties[key] = values[at + 1 : at + 1 + count]
        at += 1 + count
    return properties


def _argument(metadata: Metadata, node: tuple[Value, ...]) -> BufferArgument | BuiltinArgument:
    if len(node) < 2 or not isinstance(node[0], int) or not isinstance(node[1], str):
        raise MalformedKernelError("an argument of its kernel has no number and kind")
    if node[1] == "air.function_constant":  # Metal leaves the argument out where a constant is false
        return _argument(metadata, (node[0], *node[3:]))
    position, kind = node[0], node[1].removeprefix("air.")
    properties = _properties(node[2:])
    name, type_name = _text(properties, "air.arg_name"), _text(properties, "air.arg_type_name")
    if kind not in ("buffer", "indirect_buffer"):
        return BuiltinArgument(position, kind, name, type_name)
    access = next((a for a in ("read_write", "write", "read") if f"air.{a}" in properties), "read")
    fields = properties.get("air.struct_type_info")
    return BufferArgument(
        position=position,
        index=_number(properties, "air.location_index"),
        name=name or f"argument_{position}",
        type_name=type_name,
        size=_number(properties, "air.arg_type_size", 0),
        alignment=_number(properties, "air.arg_type_align_size", 0),
        access=cast(Access, access),
        used="air.arg_unused" not in properties,
        address_space=_number(properties, "air.address_space"),
        by_reference="air.buffer_size" in properties,
        indirect=kind == "indirect_buffer",
        fields=tuple(_fields(metadata, metadata.node(fields[0]))) if fields else (),
    )


def _text(properties: dict[str, tuple[Value, ...]], key: str) -> str:
    value = next(iter(properties.get(key, ())), "")
    return value if isinstance(value, str) else ""


def _number(properties: dict[str, tuple[Value, ...]], key: str, default: int | None = None) -> int:
    value = next(iter(properties.get(key, ())), default)
    if not isinstance(value, int):
        raise MalformedKernelError(f"an argument of its kernel has no {key}")
    return value


_DEEPEST_STRUCT = 16


def _fields(metadata: Metadata, node: tuple[Value, ...], depth: int = 0) -> Iterator[StructField]:
    """The members in a `struct_type_info`. The type info of a nested struct precedes its member."""
    if depth > _DEEPEST_STRUCT:
        raise MalformedKernelError("a struct of its arguments holds itself")
    at = 0
    inner: tuple[StructField, ...] = ()
    pending: StructField | None = None
    while at < len(node):
        word = node[at]
        if word == "air.struct_type_info":
            inner = tuple(_fields(metadata, metadata.node(node[at + 1] if at + 1 < len(node) else None), depth + 1))
            at += 2
        elif word == "air.indirect_argument":
            pending = replace(pending, is_pointer=True) if pending and not pending.fields else pending
            at += 2
        else:
            if pending:
                yield pending
            pending, inner, at = _field(node[at : at + 5], inner), (), at + 5
    if pending:
        yield pending


def _field(values: tuple[Value, ...], inner: tuple[StructField, ...]) -> StructField:
    if [type(value) for value in values] != [int, int, int, str, str]:
        raise MalformedKernelError("a member of a struct of its arguments has no place, type and name")
    offset, size, array_length, type_name, name = cast(tuple[int, int, int, str, str], values)
    return StructField(name, type_name, offset, size, array_length, fields=inner)
