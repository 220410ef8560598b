"""Draws the folders and the imports between them into docs/architecture.md: `make drawings`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from support.imports import ROOT, Arrow, arrows, modules

DOCUMENT = ROOT / "docs" / "architecture.md"
# The picture of a folder is between two marks that name it.
MARKED = re.compile(r"(<!-- drawn: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
WHOLE = "package"

Graph = dict[str, set[str]]


def drawn(document: str, imports: Iterable[Arrow]) -> str:
    """The document with each of its pictures drawn from `imports`."""
    listed = list(imports)
    return MARKED.sub(lambda marks: f"{marks[1]}{picture(graph_of(marks[2], listed))}{marks[3]}", document)


def graph_of(folder: str, imports: Iterable[Arrow]) -> Graph:
    """What imports what, of the folders of the package or of the parts of one folder.

    Modules at the root of the package are left out: every folder may import them.
    """
    named = modules()
    graph: Graph = {}
    for module, _, target in imports:
        ends = [part_in(folder, name, named) for name in (module, target)]
        if all(ends):
            here, there = ends
            graph.setdefault(here, set())
            graph.setdefault(there, set())
            if here != there:
                graph[here].add(there)
    return graph


def part_in(folder: str, module: str, named: Iterable[str]) -> str:
    """The part that a module belongs to; "" for one that is outside, or for the folder itself."""
    first, _, rest = module.partition(".")
    if folder == WHOLE:
        return first if rest or f"{first}.__main__" in named or (ROOT / first).is_dir() else ""
    return rest.partition(".")[0] if first == folder else ""


def reduced(graph: Graph) -> Graph:
    """Without the arrows that a way through others says already; a graph with a circle stays as it is."""
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError:
        return graph
    reached: Graph = {}
    kept: Graph = {}
    for name in order:
        indirectly = set().union(*(reached[target] for target in graph[name]))
        kept[name] = graph[name] - indirectly
        reached[name] = graph[name] | indirectly
    return kept


def picture(graph: Graph) -> str:
    """A Mermaid flowchart, in the order of names."""
    lines = ["```mermaid", "flowchart TD"]
    kept = reduced(graph)
    named = set().union(*kept.values())
    for name in sorted(graph):
        lines += [f"    {name} --> {target}" for target in sorted(kept[name])]
        if not kept[name] and name not in named:
            lines.append(f"    {name}")
    return "\n".join([*lines, "```", ""])


def main() -> None:
    """Draw all pictures of the document again."""
    path: Path = DOCUMENT
    path.write_text(drawn(path.read_text(encoding="utf-8"), arrows()), encoding="utf-8")


if __name__ == "__main__":
    main()
