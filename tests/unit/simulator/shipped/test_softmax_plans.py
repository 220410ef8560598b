"""Softmax and gradients of distances: which kernel rows take by length, count and layout."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from mpsmith.simulator.shipped.conventions.distances import PLANNERS as DISTANCES
from mpsmith.simulator.shipped.conventions.softmax import PLANNERS
from mpsmith.simulator.shipped.plan import Declined, KernelLaunch
from support.planning import NamedKernels, planned

ALL = NamedKernels("*")


def launches(overload: str, x: Tensor, dim: int) -> list[KernelLaunch]:
    out = torch.empty(x.shape)
    return planned(PLANNERS[overload], ALL, out, self=x, dim=dim, half_to_float=False)


def test_a_simd_group_takes_a_row() -> None:
    (launch,) = launches("_softmax", torch.empty(20, 1000), -1)
    assert launch.kernel == "softmax_row_float_u32"
    assert (launch.threads, launch.group) == ((768, 1, 1), (256, 1, 1))
    params = launch.arguments["params"]
    assert isinstance(params, dict)
    assert (params["dim_size"], params["num_rows"], params["inner_size"]) == (1000, 20, 1)


def test_few_long_rows_are_split_into_chunks() -> None:
    first, second = launches("_log_softmax", torch.empty(3, 5000), 1)
    assert (first.kernel, second.kernel) == ("softmax_partial_float_u32", "log_softmax_finalize_float_u32")
    assert first.threads == (5 * 256, 3, 1)
    assert second.arguments["partials"] is first.arguments["partials"]
    assert "output" not in first.arguments


def test_columns_and_other_layouts_take_the_kernel_of_any_layout() -> None:
    (launch,) = launches("_softmax", torch.empty(4, 50, 40), 1)
    assert launch.kernel == "softmax_float_u32"
    assert (launch.threads, launch.group) == ((64, 4 * 32, 1), (32, 32, 1))
    (launch,) = launches("_softmax", torch.empty(6, 100)[:, ::2], 1)
    assert launch.kernel == "softmax_float_u32"
    assert launch.group == (1, 64, 1)
    params = launch.arguments["params"]
    assert isinstance(params, dict)
    assert (params["sizes"], params["strides"], params["dim"]) == ([6, 50], [100, 2], 1)


def test_a_release_without_kernels_is_declined() -> None:
    with pytest.raises(Declined, match="no kernel softmax_row_float_u32"):
        planned(
            PLANNERS["_softmax"], NamedKernels(), torch.empty(3, 4), self=torch.empty(3, 4), dim=1, half_to_float=False
        )


def test_the_gradient_of_distances_has_a_thread_a_component() -> None:
    x1, x2 = torch.empty(2, 4, 70), torch.empty(2, 6, 70)
    given = {"grad": torch.empty(2, 4, 6), "x1": x1, "x2": x2, "cdist": torch.empty(2, 4, 6)}
    (launch,) = planned(DISTANCES["_cdist_backward"], ALL, torch.empty(2, 4, 70), **given, p=1.5)
    assert launch.kernel == "cdist_backward_float_p2_tg128"
    assert launch.arguments["params"] == {"B": 2, "P": 4, "R": 6, "D": 70, "p_minus_1": 0.5}
    assert launch.arguments["grad"].data_ptr() == given["grad"].data_ptr()  # type: ignore[attr-defined]
    assert launch.arguments["cdist"].data_ptr() == given["cdist"].data_ptr()  # type: ignore[attr-defined]
    assert (launch.threads, launch.group) == ((128, 4, 2), (128, 1, 1))
    nothing = given | {"x1": x1[:0], "x2": x2[:1]}
    with pytest.raises(Declined, match="over nothing"):
        planned(DISTANCES["_cdist_backward"], ALL, torch.empty(2, 4, 70), **nothing, p=1.5)
    with pytest.raises(Declined, match="other operators"):
        planned(DISTANCES["_cdist_backward"], ALL, torch.empty(2, 4, 70), **given, p=2.0)
