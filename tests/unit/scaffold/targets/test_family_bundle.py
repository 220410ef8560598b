"""All patches together: PyTorch's build makes one library of all Metal files, and no two may name a kernel alike."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache

from mpsmith.kernels.runtime import catalog
from mpsmith.scaffold.targets.upstream.family import Family
from mpsmith.scaffold.targets.upstream.family_metal import moved
from mpsmith.simulator.clang import installed

_SYSTEM = re.compile(r"^#include <[^>]+>\n", re.MULTILINE)
_MACRO = re.compile(r"^#define (\w+)", re.MULTILINE)
_KERNEL = re.compile(r"(?P<template>template\s*<[^;{]*?>\s*)?\bkernel\s+void\s+(?P<name>\w+)\s*\(")
_NAMED = re.compile(r'host_name\((?P<name>(?:\s*"[^"]*")+)\s*\)')
_FUNCTOR = re.compile(r"\bREGISTER_(?:UNARY|BINARY)_OP\((?P<name>\w+),")
# What only some launches of PyTorch's own headers declare is left as it stands.
_MARK = "MPSMITH_FAMILY"


@cache
def kernels_by_family() -> dict[str, set[str]]:
    """The names under which the Metal file of each family's patch has kernels, as a preprocessor leaves them."""
    patched = [family for name in catalog.families() if (family := Family.named(name)).patched]
    whole = []
    for family in patched:
        text = _SYSTEM.sub("", moved(family.metal))
        whole += [f"{_MARK} {family.name}", text, *(f"#undef {macro}" for macro in _MACRO.findall(text))]
    done = installed().run("clang", "-E", "-P", "-x", "c++", "-nostdinc", "-", source="\n".join(whole) + "\n")
    assert done.succeeded, done.stderr
    parts = re.split(rf"^{_MARK} (\w+)$", done.stdout, flags=re.MULTILINE)
    return {name: _kernels(text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def _kernels(text: str) -> set[str]:
    named = {"".join(re.findall(r'"([^"]*)"', match["name"])) for match in _NAMED.finditer(text)}
    plain = {match["name"] for match in _KERNEL.finditer(text) if not match["template"]}
    return named | plain | {match["name"] for match in _FUNCTOR.finditer(text)}


def test_no_two_families_name_a_kernel_alike() -> None:
    families = defaultdict(list)
    for family, names in kernels_by_family().items():
        assert names, f"{family} has no kernel"
        for name in names:
            families[name].append(family)
    assert {name: both for name, both in families.items() if len(both) > 1} == {}
