"""Overloads and surfaces made by hand."""

from __future__ import annotations

from mpsmith.audit.releases.surface.overloads import Dispatch, Overload, Surface
from mpsmith.audit.releases.surface.reachability import Reachable


def overload(
    name: str, dispatch: Dispatch = Dispatch.MISSING, arguments: str = "Tensor self", **fields: object
) -> Overload:
    """`aten::NAME`, without tags and reachable unless `fields` say otherwise; a generated one has no schema."""
    schema = "" if "generated_from" in fields else f"aten::{name}({arguments}) -> Tensor"
    plain: dict[str, object] = {"schema": schema, "tags": (), "has_autograd_formula": False, "reach": Reachable()}
    operator = f"aten::{name.split('.')[0]}"
    return Overload(name=f"aten::{name}", operator=operator, dispatch=dispatch, declared=dispatch, **(plain | fields))


def surface(*overloads: Overload) -> Surface:
    """The surface of 2.13.0 with these overloads alone."""
    return Surface(overloads, release="2.13.0", source="made by hand")
