"""`mpsmith surface`: how each operator overload of the installed torch dispatches on mps, by its declarations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .options import AsJson, Operators, values_of
from .printing import print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..audit.releases.surface import Overload, Surface


def surface(
    ops: Operators = None,
    missing: Annotated[
        bool, typer.Option("--missing", help="Only overloads without a kernel that users reach.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Compare with the dispatcher of the running torch, which needs an mps device."),
    ] = False,
    imports: Annotated[
        list[str] | None,
        typer.Option("--import", metavar="PACKAGE", help="Import this first, for operators such as torchvision::nms."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show how the operators of the installed torch dispatch on mps: native, composite, falling back or missing."""
    from ..audit.releases.surface import installed_surface

    found = installed_surface()
    if check:
        _check(found, as_json)
        return
    chosen = _selected(found, values_of(ops, "--ops"), values_of(imports, "--import"))
    if missing:
        chosen = [overload for overload in chosen if _is_gap(overload)]
    if as_json:
        _print_json(found, chosen)
    elif ops or missing:
        _print_overloads(chosen)
    else:
        _print_counts(found)


def _selected(surface: Surface, patterns: Sequence[str], imports: Sequence[str]) -> list[Overload]:
    """Overloads of aten from the surface; those of other namespaces from the dispatcher, once they are imported."""
    from ..audit.releases.surface import dispatcher_surface
    from ..audit.releases.surface.name_patterns import select_overloads

    _import(imports)
    elsewhere = [pattern for pattern in patterns if "::" in pattern and not pattern.startswith("aten::")]
    of_aten = [pattern for pattern in patterns if pattern not in elsewhere]
    chosen = select_overloads(surface.overloads, of_aten) if of_aten or not patterns else []
    return chosen + list(dispatcher_surface(elsewhere) if elsewhere else ())


def _import(packages: Sequence[str]) -> None:
    import importlib

    from ..errors import MpsmithError

    for package in packages:
        try:
            importlib.import_module(package)
        except ImportError as error:
            raise MpsmithError(f"cannot import {package}: {error}") from None


def _is_gap(overload: Overload) -> bool:
    from ..audit.releases.surface import Dispatch

    gaps = (Dispatch.MISSING, Dispatch.ALWAYS_FALLS_BACK)
    return overload.dispatch in gaps and overload.reachable


def _print_counts(surface: Surface) -> None:
    from tabulate import tabulate

    rows = []
    for dispatch, count in surface.counts().items():
        overloads = [overload for overload in surface.overloads if overload.dispatch is dispatch]
        operators = {overload.operator for overload in overloads}
        reachable = sum(overload.reachable for overload in overloads)
        rows.append((dispatch.value, count, len(operators), reachable))
    rows.append(("all", len(surface.overloads), len(surface.by_operator), sum(o.reachable for o in surface.overloads)))
    typer.echo(f"torch {surface.release}, by its declarations ({surface.source})\n")
    typer.echo(tabulate(rows, headers=("dispatch on mps", "overloads", "operators", "overloads in reach")))


def _print_overloads(overloads: Sequence[Overload]) -> None:
    from tabulate import tabulate

    from ..audit.releases.surface import Unreachable

    rows = [
        (
            overload.name,
            overload.dispatch.value,
            "yes" if overload.has_autograd_formula else "",
            f"no: {overload.reach.rule}" if isinstance(overload.reach, Unreachable) else "yes",
        )
        for overload in overloads
    ]
    typer.echo(tabulate(rows, headers=("overload", "dispatch on mps", "autograd formula", "in reach")))


def _print_json(surface: Surface, overloads: Sequence[Overload]) -> None:
    from ..audit.releases.surface.json_form import to_json

    report = {
        "release": surface.release,
        "source": surface.source,
        "counts": {dispatch.value: count for dispatch, count in surface.counts().items()},
        "overloads": [to_json(overload) for overload in overloads],
    }
    print_json(report)


def _check(surface: Surface, as_json: bool) -> None:
    from dataclasses import asdict

    from ..audit.releases.surface import check_against_dispatcher
    from ..errors import MpsmithError

    if not _has_mps():
        raise MpsmithError("--check needs a torch with an mps device; this one has none")
    disagreements = check_against_dispatcher(surface)
    if as_json:
        print_json([asdict(disagreement) for disagreement in disagreements])
    else:
        for disagreement in disagreements:
            typer.echo(str(disagreement))
        typer.echo(f"{len(surface.overloads)} overloads compared, {len(disagreements)} disagreements")
    if disagreements:
        raise typer.Exit(1)


def _has_mps() -> bool:
    import torch

    return bool(torch.backends.mps.is_available())
