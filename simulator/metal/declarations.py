"""The structure of a Metal program: namespaces, classes, functions and kernels. Function bodies are skipped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from .attributes import BINDINGS, BUILTINS, Attributes, attribute_argument, attribute_name, host_name, max_threads
from .tokens import Tokens

ADDRESS_SPACES = frozenset({"device", "constant", "threadgroup", "thread", "threadgroup_imageblock"})
_CLASS_WORDS = frozenset({"struct", "class", "union"})
_NOT_IN_SIGNATURE = frozenset({"inline", "static", "METAL_FUNC", "constexpr", ""})
_CONSTRUCTOR_WORDS = frozenset({"constexpr", "explicit", "inline", "METAL_FUNC", ""})
_NO_VARIABLES = frozenset(
    ["using", "typedef", "static_assert", "_Static_assert", "friend", "enum", "extern", "asm", *_CLASS_WORDS]
)
_NOT_PARAMETERS = ("alignas", "__attribute__", "decltype", "noexcept")
STAGES = frozenset({"vertex", "fragment", "mesh", "object", "intersection"})
"""Entry points of rendering: as qualifiers (the first two) or as attributes."""

_SWIZZLE = re.compile(r"[xyzw]{2,4}|[rgba]{2,4}")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel: its tokens' range, its name and the one attribute that binds it (or "").

    `optional`: a function constant decides whether the parameter exists.
    """

    begin: int
    end: int
    name: str
    attribute: str
    optional: bool


@dataclass(frozen=True)
class Function:
    """A function definition. Token indices: `start` (template header included), `head` (return type), the brackets."""

    name: str
    scope: str
    start: int
    head: int
    parameters_begin: int
    body_begin: int
    body_end: int
    is_template: bool
    is_kernel: bool
    stage: str  # of rendering, such as "vertex", or ""
    in_class: bool
    host_name: str | None
    max_threads: int
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True)
class Instantiation:
    """`template [[host_name("n")]] kernel void f<T>(...);`: which function, under which name."""

    host_name: str | None
    scope: str
    start: int
    end: int
    function: str  # as an expression, such as `ns::f<float>`
    base: str  # the function's name without scope and template arguments
    signature: str | None  # its parameter list, where it is restated
    parameters: tuple[Parameter, ...] | None


@dataclass
class Program:
    """The declarations of a program."""

    functions: list[Function] = field(default_factory=list)
    instantiations: list[Instantiation] = field(default_factory=list)
    swizzle_like_members: set[str] = field(default_factory=set)
    function_constants: list[int] = field(default_factory=list)  # index of the `;` that ends each
    variables: list[tuple[int, int]] = field(
        default_factory=list
    )  # tokens of those at program scope, and static members
    bound: list[tuple[int, int, str]] = field(default_factory=list)  # those at program scope with such an attribute


class DeclarationWalk:
    """Walks the tokens of a program; `program` has the result. Duplicates are erased from the tokens.

    Overloads and specializations that differ only by address space are duplicates when address spaces are erased: with
    `drop_duplicates` all but the first are dropped.
    """

    def __init__(self, tokens: Tokens, attributes: Attributes, drop_duplicates: bool) -> None:
        self.tokens = tokens
        self.attributes = attributes
        self.drop_duplicates = drop_duplicates
        self.program = Program()
        self._seen: set[str] = set()
        self._walk(0, len(tokens), "", in_class=False)

    # ------------------------------------------------------------------------------------------ scopes
    def _walk(self, i: int, end: int, scope: str, in_class: bool) -> None:
        text, pair = self.tokens.text, self.tokens.pair
        while i < end:
            token = text[i]
            if token in (";", ""):
                i += 1
            elif token == "namespace" or (token == "inline" and text[i + 1] == "namespace"):
                i = self._namespace(i, scope)
            elif token == "extern" and text[i + 1].startswith('"') and text[i + 2] == "{":
                self._walk(i + 3, pair[i + 2], scope, in_class=False)
                i = pair[i + 2] + 1
            elif in_class and token in ("public", "private", "protected") and text[i + 1] == ":":
                i += 2
            else:
                i = self._declaration(i, end, scope, in_class)

    def _namespace(self, i: int, scope: str) -> int:
        text, pair = self.tokens.text, self.tokens.pair
        j = i + 1
        while text[j] not in ("{", ";", "="):
            j += 1
        if text[j] == "{":
            name = "".join(text[i + 1 : j]).removeprefix("namespace")
            self._walk(j + 1, pair[j], f"{scope}{name}::" if name else scope, in_class=False)
            return pair[j] + 1
        return self._statement_end(j) + 1

    def _statement_end(self, i: int) -> int:
        """Index of the `;` that ends the statement around `i`."""
        text, pair = self.tokens.text, self.tokens.pair
        while i < len(text) and text[i] != ";":
            i = pair[i] + 1 if text[i] in ("(", "[", "{") else i + 1
        return i

    # ------------------------------------------------------------------------------------------ declarations
    def _declaration(self, start: int, end: int, scope: str, in_class: bool) -> int:
        """Handle the declaration that starts at `start`; returns the index after it."""
        text = self.tokens.text
        head = start
        while text[head] == "template":
            if text[head + 1] != "<":
                return self._instantiation(start, scope)
            close = self.tokens.close_angle(head + 1)
            if close is None:
                return self._statement_end(head) + 1
            head = close + 1
        parameters, stop = self._scan_declarator(head, end)
        if stop >= end:
            return end
        if text[stop] != "{":
            return self._statement(start, head, self._statement_end(stop), parameters, scope, in_class)
        if parameters >= 0:
            return self._function(start, head, parameters, stop, scope, in_class)
        words = set(text[head:stop])
        if words & _CLASS_WORDS and "enum" not in words:
            return self._class(start, head, stop, scope)
        return self._statement(start, head, self._statement_end(stop), -1, scope, in_class)

    def _scan_declarator(self, i: int, end: int) -> tuple[int, int]:
        """The `(` of the parameters, or -1, and the `{`, `=` or `;` that ends the declarator."""
        text, pair = self.tokens.text, self.tokens.pair
        parameters = -1
        while i < end and text[i] not in ("{", "=", ";"):
            token = text[i]
            if token == "(" and parameters < 0 and text[i - 1] not in _NOT_PARAMETERS:
                parameters = i
            if token in ("(", "["):
                i = pair[i] + 1
            elif token == "operator":  # the tokens of operator() and operator= have another meaning here
                i += 3 if text[i + 1] in ("(", "[") else 2
            elif token == ":" and parameters >= 0:
                i = self._constructor_body(i)
            else:
                i += 1
        return parameters, i

    def _constructor_body(self, i: int) -> int:
        """Index of the `{` of the body after the member initializers that start at `i`."""
        text, pair = self.tokens.text, self.tokens.pair
        i += 1
        while i < len(text):
            if text[i] == "(":
                i = pair[i] + 1
            elif text[i] == "{":
                if not (text[i - 1].isidentifier() or text[i - 1] == ">"):
                    return i
                i = pair[i] + 1
                if text[i] not in (",", "{"):
                    return i
            else:
                i += 1
        return i

    def _statement(self, start: int, head: int, end: int, parameters: int, scope: str, in_class: bool) -> int:
        """A declaration that ends with `;` at `end`: a variable, an alias, a prototype."""
        text = self.tokens.text
        if in_class and parameters >= 0:
            self._erase_space_of_constructor(head, parameters, end)
        names = {attribute_name(attribute) for attribute in self.attributes.get(end, ())}
        if "function_constant" in names:
            self.program.function_constants.append(end)
        elif not in_class and (bound := names & (BUILTINS | BINDINGS)):
            self.program.bound.append((head, end, bound.pop()))
        elif parameters < 0 and text[head] not in _NO_VARIABLES and (not in_class or "static" in text[head:end]):
            self.program.variables.append((head, end))
        if in_class:
            for i in range(head, end):
                if _SWIZZLE.fullmatch(text[i]) and text[i + 1] in (";", ",", "=", "["):
                    self.program.swizzle_like_members.add(text[i])
            if parameters >= 0 and self._is_duplicate(start, end, scope):
                self.tokens.erase(start, end + 1)
        return end + 1

    def _class(self, start: int, head: int, body: int, scope: str) -> int:
        text, pair = self.tokens.text, self.tokens.pair
        is_specialization = "<" in text[head:body]
        end = self._statement_end(pair[body])
        if is_specialization and self._is_duplicate(start, body, scope):
            self.tokens.erase(start, end + 1)
            return end + 1
        name = next((t for t in text[head:body] if t.isidentifier() and t not in _CLASS_WORDS), "")
        unique = f"{scope}{name}::" if not is_specialization else f"{scope}{''.join(text[head:body])}::"
        self._walk(body + 1, pair[body], unique, in_class=True)
        return end + 1

    def _function(self, start: int, head: int, parameters: int, body: int, scope: str, in_class: bool) -> int:
        text, pair = self.tokens.text, self.tokens.pair
        end = pair[body]
        if in_class:
            self._erase_space_of_constructor(head, parameters, body)
        if self._is_duplicate(start, self._signature_end(parameters, body), scope):
            self.tokens.erase(start, end + 1)
            return end + 1
        attributes = [a for i in range(start, parameters) for a in self.attributes.get(i, ())]
        is_kernel = "kernel" in text[start:parameters] or any(attribute_name(a) == "kernel" for a in attributes)
        stage = self._stage(head, parameters, attributes)
        self.program.functions.append(
            Function(
                name=text[parameters - 1],
                scope=scope,
                start=start,
                head=head,
                parameters_begin=parameters,
                body_begin=body,
                body_end=end,
                is_template=head > start,
                is_kernel=is_kernel,
                stage=stage,
                in_class=in_class,
                host_name=host_name(attributes),
                max_threads=max_threads(attributes),
                parameters=tuple(self._parameters(parameters)) if is_kernel else (),
            )
        )
        return end + 1

    def _stage(self, head: int, parameters: int, attributes: list[str]) -> str:
        """The stage of rendering of the function that starts at `head`, or ""; its qualifier becomes `inline`."""
        text = self.tokens.text
        qualifier = next((i for i in range(head, parameters - 1) if text[i] in ("vertex", "fragment")), None)
        if qualifier is not None:
            stage, text[qualifier] = text[qualifier], "inline"
            return stage
        return next((name for a in attributes if (name := attribute_name(a)) in STAGES), "")

    def _signature_end(self, parameters: int, body: int) -> int:
        """The end of the signature: in front of a constructor's member initializers, or of the body."""
        text = self.tokens.text
        i = self.tokens.pair[parameters] + 1
        while i < body and text[i] != ":":
            i += 1
        return i

    def _erase_space_of_constructor(self, head: int, parameters: int, end: int) -> None:
        """`c() constant`: the address space of the object. C++ refuses `const` here."""
        text = self.tokens.text
        if not _CONSTRUCTOR_WORDS.issuperset(text[head : parameters - 1]):
            return
        for i in range(self.tokens.pair[parameters] + 1, end):
            if text[i] in (":", "=", "{"):
                return
            if text[i] in ADDRESS_SPACES and self.drop_duplicates:
                text[i] = ""
            elif text[i] == "constant":
                text[i] = "__global"

    # ------------------------------------------------------------------------------------------ duplicates
    def _is_duplicate(self, start: int, end: int, scope: str) -> bool:
        """Whether tokens `start` to `end - 1` repeat an earlier declaration, apart from address spaces."""
        if not self.drop_duplicates:
            return False
        words: list[str] = [scope]
        text = self.tokens.text
        other = {i: word for p in self._parameter_lists(start, end) for i, word in self._as_pointer_without_name(p)}
        for i in range(start, end):
            word = "const" if text[i] == "constant" else other.get(i, text[i])
            if word in ADDRESS_SPACES or word in _NOT_IN_SIGNATURE:
                continue
            if word == "const" and words[-1] == "const":
                continue
            words.append(word)
        key = " ".join(words)
        if key in self._seen:
            return True
        self._seen.add(key)
        return False

    def _parameter_lists(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        text = self.tokens.text
        for i in range(start, end):
            if text[i] == "(" and text[i - 1] not in ("alignas", "decltype", "noexcept", "sizeof"):
                yield from self.split(i)
                return

    def _as_pointer_without_name(self, parameter: tuple[int, int]) -> Iterator[tuple[int, str]]:
        """Words that replace tokens: a name does not distinguish overloads, and a parameter `a[n]` is a pointer."""
        begin, end = parameter
        text, pair = self.tokens.text, self.tokens.pair
        array = next((i for i in range(begin, end) if text[i] == "[" and text[i - 1].isidentifier()), end)
        last = array - 1
        kinds = [t for t in text[begin:array] if t and t not in ADDRESS_SPACES and t not in ("const", "constant")]
        if len(kinds) > 1 and text[last].isidentifier() and text[last - 1] != "::" and "=" not in text[begin:end]:
            yield last, ""
        if array < end:
            yield array, "*"
            yield from ((i, "") for i in range(array + 1, pair[array] + 1))

    # ------------------------------------------------------------------------------------------ kernels
    def split(self, opening: int) -> Iterator[tuple[int, int]]:
        """Ranges between the commas of the bracket at `opening`."""
        text, pair = self.tokens.text, self.tokens.pair
        begin, close = opening + 1, pair[opening]
        i = begin
        while i < close:
            token = text[i]
            if token in ("(", "[", "{"):
                i = pair[i]
            elif token == "<":
                i = self.tokens.close_angle(i) or i
            elif token == ",":
                yield begin, i
                begin = i + 1
            i += 1
        if begin < close:
            yield begin, close

    def _parameters(self, opening: int) -> Iterator[Parameter]:
        for begin, end in self.split(opening):
            attributes = [a for i in range(begin, end + 1) for a in self.attributes.get(i, ())]
            binding = [a for a in attributes if attribute_name(a) not in ("function_constant", "maybe_unused")]
            names = [t for t in self.tokens.text[begin:end] if t.isidentifier()]
            optional = any(attribute_name(a) == "function_constant" for a in attributes)
            yield Parameter(begin, end, names[-1] if names else "", binding[0] if binding else "", optional)

    def _instantiation(self, start: int, scope: str) -> int:
        text = self.tokens.text
        end = self._statement_end(start)
        attributes = [a for i in range(start, end + 1) for a in self.attributes.get(i, ())]
        name = host_name(attributes)
        is_kernel = name is not None or "kernel" in text[start:end]
        if not is_kernel:
            return end + 1
        for i in range(start, end):
            if text[i] == "kernel":
                text[i] = ""
        opening, function = self._instantiated_function(start + 1, end)
        signature = None if opening is None else self.tokens.span(opening, end)
        parameters = None if opening is None else tuple(self._parameters(opening))
        base = re.match(r"[\w\s:]*", function)
        bare = (base[0] if base else function).replace(" ", "").split("::")[-1]
        self.program.instantiations.append(
            Instantiation(name, scope, start, end, f"{scope}{function}", bare, signature, parameters)
        )
        return end + 1

    def _instantiated_function(self, first: int, end: int) -> tuple[int | None, str]:
        """The `(` of a restated parameter list, or None, and the function with its template arguments."""
        text, pair = self.tokens.text, self.tokens.pair
        while text[first] in ("void", "inline", "static", ""):
            first += 1
        if text[first] == "decltype":  # template decltype(f<T>) f<T>;
            return None, self.tokens.span(first + 2, pair[first + 1])
        if text[end - 1] == ")":  # template void f<T>(...);
            opening = pair[end - 1]
            return opening, self.tokens.span(first, opening)
        while text[first + 1] not in ("<", "::") and first + 1 < end:  # template type_name f<T>;
            first += 1
        return None, self.tokens.span(first, end)


def buffer_index(parameter: Parameter) -> int | None:
    """The index in `[[buffer(n)]]`, or None."""
    if attribute_name(parameter.attribute) != "buffer":
        return None
    argument = attribute_argument(parameter.attribute)
    return int(argument) if argument.isdigit() else None
