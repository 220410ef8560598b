"""Operators that the host code of 2.13.0 and 2.15.0 runs entirely in MPSGraph, so that no shipped kernel computes them.

Source: the binaries of both releases, whose functions for them run a graph and look up no kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..call import Call
from ..plan import Declined, Planner, ReleaseKernels, Step

_OVERLOADS = (
    "_fft_c2c",
    "_fft_c2c.out",
    "_fft_c2r",
    "_fft_c2r.out",
    "_fft_r2c",
    "_fft_r2c.out",
    "_lstm_mps",
    "_prelu_kernel",
    "_prelu_kernel_backward",
    "_weight_norm_interface",
    "_weight_norm_interface_backward",
    "addmv",
    "addmv.out",
    "addmv_",
    "addr",
    "addr.out",
    "binary_cross_entropy",
    "binary_cross_entropy.out",
    "binary_cross_entropy_backward",
    "binary_cross_entropy_backward.grad_input",
    "dot",
    "huber_loss",
    "huber_loss.out",
    "huber_loss_backward.out",
    "lstm_mps_backward",
    "mse_loss",
    "mse_loss.out",
    "mse_loss_backward",
    "mse_loss_backward.grad_input",
    "smooth_l1_loss",
    "smooth_l1_loss.out",
    "smooth_l1_loss_backward.grad_input",
    "vdot",
)


def _in_graph(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    raise Declined("MPSGraph")


PLANNERS: dict[str, Planner] = dict.fromkeys(_OVERLOADS, _in_graph)
