"""out= calls whose outputs have gaps or a different order in memory, where kernels write to wrong places.

The CPU gets contiguous outputs: some of its kernels ignore the strides of outputs (`adaptive_max_pool3d.out`), and the
result of a call must not depend on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from ...audit.cases.calls.invocation import SchemaCall, out_arguments
from ...audit.cases.sources.write_targets import Place, every_other_element, schema_case, transposed
from ...audit.judging.transfer import move
from ...audit.model.case import Case

PLACES: tuple[Place, ...] = (transposed, every_other_element)


def with_given_outputs(case: Case) -> Iterator[Case]:
    """A recorded call of an out overload, for each place that its outputs can have on mps; nothing for other calls."""
    if not isinstance(case.call, SchemaCall) or not out_arguments(case.call.__name__):
        return
    given = schema_case(case)
    if given is None:
        return
    fitting, _ = given
    names = out_arguments(case.call.__name__)
    for place in PLACES:
        placed = {name: place(fitting.kwargs[name]) for name in names}
        if any(output is not None for output in placed.values()) and _accepts(fitting, placed):
            call = IntoPlaced(case.call, place)
            yield replace(fitting, call=call, title=f"out= {place.__name__.replace('_', ' ')}")


def _accepts(case: Case, placed: dict[str, torch.Tensor | None]) -> bool:
    """Whether the CPU accepts these outputs: `_int_mm` requires contiguous ones."""
    args, kwargs = move(case.args, case.kwargs, "cpu")
    try:
        case.call(*args, **{**kwargs, **{name: output for name, output in placed.items() if output is not None}})
    except Exception:  # whatever it raises, that is about errors
        return False
    return True


class IntoPlaced:
    """Calls an out overload; on mps, into outputs that are views of larger memory filled with ones.

    The result holds the outputs, and for each whether the memory around it is unchanged.
    """

    def __init__(self, call: SchemaCall, place: Place) -> None:
        self.__name__ = call.__name__
        self._call = call
        self._place = place
        self._names = out_arguments(call.__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the overload; return copies of the outputs, and for each whether the memory around it is unchanged."""
        given = {name: kwargs[name] for name in self._names}
        placed = {name: self._placed(output) for name, output in given.items()}
        self._call(*args, **{**kwargs, **placed})
        kept = [placed[name] is given[name] or _storage_around_unchanged(placed[name]) for name in self._names]
        return [given[name].copy_(placed[name]).clone() for name in self._names], kept

    def _placed(self, output: torch.Tensor) -> torch.Tensor:
        other = None if output.is_cpu else self._place(output)
        return output if other is None else other


def _storage_around_unchanged(output: torch.Tensor) -> bool:
    """Whether the output's storage holds ones wherever it holds no element of the output; checked on the CPU."""
    whole = torch.empty(0, dtype=output.dtype, device=output.device).set_(output.untyped_storage()).cpu()
    whole.as_strided(output.shape, output.stride(), output.storage_offset()).fill_(1)
    return bool((whole == 1).all())
