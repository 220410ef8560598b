"""The surface, computed from declarations, against the dispatch tables of a torch with an mps device."""

import contextlib
import sys

from mpsmith.audit.releases.surface import installed_surface
from mpsmith.simulator.device import kernel_plan
from support.dispatch_tables import check_against_dispatcher

# What the simulated device registers beside the profile (csrc/composites.cpp), where a Mac has other code.
OWN_COMPOSITES = {
    "convolution_overrideable",
    "convolution_backward_overrideable",
    "scaled_dot_product_attention",
    "lstm.input",
}


def test_the_surface_agrees_with_the_dispatcher() -> None:
    surface = installed_surface()
    ours = sys.modules.get("mpsmith.kernels")  # another test of this process may have registered our kernels
    with ours.use() if ours else contextlib.nullcontext():
        disagreements = {item.overload.removeprefix("aten::") for item in check_against_dispatcher(surface)}
    planned = set(kernel_plan.ALWAYS_NATIVE) | set(kernel_plan.NEVER_NATIVE) | set(kernel_plan.REFUSING)
    deviations = planned | OWN_COMPOSITES
    assert disagreements <= deviations
    assert len(surface.overloads) > 3000
