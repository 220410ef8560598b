"""The kernels of a program, and how their parameters are bound."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ...metal_limits import MAX_BUFFERS
from ..errors import MetalRuntimeError
from .attributes import BUILTINS, attribute_argument, attribute_name
from .declarations import Function, Instantiation, Parameter, Program, buffer_index
from .problems import Problems
from .tokens import Location, Tokens

_TEXTURE = re.compile(r"(?:texture(?:1d|2d|3d|cube|_buffer)|depth(?:2d|cube))(?:_\w+)?|sampler")

FIRST_THREADGROUP_SLOT = MAX_BUFFERS + 1
"""The first slot for `[[threadgroup(n)]]` in the table of arguments, after all buffers."""


@dataclass(frozen=True)
class KernelArgument:
    """How a kernel parameter gets its value."""

    kind: Literal["buffer", "threadgroup", "builtin", "texture"]  # a sampler counts as a texture
    index: int  # of the buffer; -1 for a builtin or a texture
    builtin: str
    name: str
    in_constant: bool = False  # a buffer in the constant address space

    @property
    def slot(self) -> int:
        """The slot of a buffer or threadgroup argument in the table of arguments."""
        return self.index if self.kind == "buffer" else FIRST_THREADGROUP_SLOT + self.index


@dataclass(frozen=True)
class EntryPoint:
    """A kernel that can be called by name."""

    name: str
    function: str
    signature: str | None
    arguments: tuple[KernelArgument, ...]
    max_threads: int  # of a threadgroup
    location: Location

    @property
    def texture_names(self) -> list[str]:
        """The parameters that are textures or samplers: such a kernel compiles, and does not run."""
        return [argument.name for argument in self.arguments if argument.kind == "texture"]

    def require_no_textures(self) -> None:
        """Raise MetalRuntimeError if the kernel has textures."""
        if self.texture_names:
            raise MetalRuntimeError(
                f"kernel '{self.name}' ({self.location.file}:{self.location.line}) takes the textures "
                f"{', '.join(self.texture_names)}: the simulator has no textures, only buffers"
            )


def kernel_entries(tokens: Tokens, program: Program, problems: Problems) -> Iterator[EntryPoint]:
    """The callable kernels: functions that are not templates, and explicit instantiations."""
    by_name: dict[str, list[Function]] = {}
    for function in program.functions:
        if function.is_kernel:
            by_name.setdefault(function.name, []).append(function)
    starts = [f.parameters_begin for f in program.functions if f.is_kernel]
    locations = tokens.locate(starts + [i.start for i in program.instantiations])
    for function in program.functions:
        if function.is_kernel and not function.is_template:
            arguments = tuple(_arguments(tokens, function.parameters, function.name, problems))
            yield EntryPoint(
                function.host_name or function.name,
                f"{function.scope}{function.name}",
                None,
                arguments,
                function.max_threads,
                locations[function.parameters_begin],
            )
    for instantiation in program.instantiations:
        template = _template_of(instantiation, by_name.get(instantiation.base, []))
        if template is None:
            problems.add(
                instantiation.start,
                "no-such-kernel",
                f"'{instantiation.function}' is instantiated as a kernel, and no kernel template has that name",
            )
            continue
        name = instantiation.host_name or instantiation.base
        arguments = tuple(_arguments(tokens, template.parameters, name, problems))
        yield EntryPoint(
            name,
            instantiation.function,
            instantiation.signature,
            arguments,
            template.max_threads,
            locations[instantiation.start],
        )


def _template_of(instantiation: Instantiation, candidates: list[Function]) -> Function | None:
    same_scope = [f for f in candidates if f.scope == instantiation.scope] or candidates
    if instantiation.parameters is not None and len(same_scope) > 1:
        count = len(instantiation.parameters)
        same_scope = [f for f in same_scope if len(f.parameters) == count] or same_scope
    return same_scope[0] if same_scope else None


def _arguments(
    tokens: Tokens, parameters: tuple[Parameter, ...], kernel: str, problems: Problems
) -> Iterator[KernelArgument]:
    """Bind parameters; one without an attribute gets the next free buffer index."""
    taken = {index for p in parameters if (index := buffer_index(p)) is not None}
    next_free = 0
    bound: dict[int, Parameter] = {}
    for parameter in parameters:
        attribute = attribute_name(parameter.attribute)
        token = parameter.end
        if attribute in BUILTINS:
            yield KernelArgument("builtin", -1, attribute, parameter.name)
            continue
        if attribute in ("texture", "sampler") or _is_texture(tokens, parameter):
            yield KernelArgument("texture", -1, "", parameter.name)
            continue
        if attribute == "threadgroup":
            argument = attribute_argument(parameter.attribute)
            yield KernelArgument("threadgroup", int(argument) if argument.isdigit() else 0, "", parameter.name)
            continue
        if attribute == "buffer":
            explicit = buffer_index(parameter)
            if explicit is None:
                problems.add(
                    token,
                    "bad-attribute",
                    f"[[{parameter.attribute}]] on parameter '{parameter.name}' of kernel '{kernel}' "
                    "needs a number as index",
                )
                continue
            index = explicit
        elif attribute == "":
            while next_free in taken:
                next_free += 1
            index = next_free
            taken.add(index)
        else:
            problems.add(
                token,
                "bad-attribute",
                f"unknown attribute [[{parameter.attribute}]] on parameter '{parameter.name}' of kernel '{kernel}'",
            )
            continue
        if index >= MAX_BUFFERS:
            problems.add(
                token,
                "too-many-buffers",
                f"kernel '{kernel}' binds '{parameter.name}' to buffer {index}: "
                f"Metal has buffers 0 to {MAX_BUFFERS - 1}",
            )
        other = bound.setdefault(index, parameter)
        if other is not parameter and not (other.optional and parameter.optional):
            problems.add(
                token,
                "one-buffer-twice",
                f"kernel '{kernel}' binds '{other.name}' and '{parameter.name}' to buffer {index}",
            )
        in_constant = "constant" in tokens.text[parameter.begin : parameter.end]
        yield KernelArgument("buffer", index, "", parameter.name, in_constant)


def _is_texture(tokens: Tokens, parameter: Parameter) -> bool:
    """Whether the parameter is a texture or a sampler, by its type; a pointer to one is a buffer."""
    words = tokens.text[parameter.begin : parameter.end]
    return "*" not in words and "&" not in words and any(_TEXTURE.fullmatch(word) for word in words)
