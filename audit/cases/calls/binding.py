"""The arguments of a call by the names that the overload's schema gives them, and a call with some of them changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .invocation import overload_of


class Binding:
    """The arguments of one call of an overload.

    Args:
        name: the overload, "aten::topk".
        args, kwargs: what it is called with.

    Attributes:
        schema: the arguments as the schema has them, in order.
        given: the call's arguments by name, and the defaults of positional ones that are not given.
    """

    def __init__(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.schema = list(overload_of(name)._schema.arguments)
        self._given_in_place = len(args)
        self.given = {argument.name: value for argument, value in zip(self.schema, args, strict=False)}
        for argument in self.schema[len(args) :]:
            if argument.name in kwargs:
                self.given[argument.name] = kwargs[argument.name]
            elif argument.has_default_value():
                self.given[argument.name] = argument.default_value
        self._named = frozenset(kwargs)

    def with_others(self, others: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call with other values for some arguments: the positional ones that have to be given, and the rest."""
        values = {**self.given, **others}
        places = [i for i, argument in enumerate(self.schema) if argument.name in others and not argument.kwarg_only]
        # A named argument stays named, unless a positional one after it has to be given.
        count = max([self._given_in_place, *(place + 1 for place in places)])
        args = tuple(values[argument.name] for argument in self.schema[:count])
        in_place = {argument.name for argument in self.schema[:count]}
        named = [name for name in (*self._named, *others) if name not in in_place]
        return args, {argument.name: values[argument.name] for argument in self.schema if argument.name in named}
