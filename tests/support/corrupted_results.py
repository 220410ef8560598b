"""Gives one element of each device result a wrong value, for an audit that imports this module into its workers.

No rule may explain a result that is wrong in this way:

    PYTHONPATH=tests mpsmith audit --import support.corrupted_results --shipped auto --ops erfc,elu --store a.sqlite
"""

from __future__ import annotations

import torch
from torch import Tensor

from mpsmith.audit.judging.execution import Execution
from mpsmith.audit.judging.judge import Trial

WRONG = 12345.678
WRONG_INTEGERS = (77, 78)
_run_on_device = Trial._run_on_device


def corrupt(result: Tensor) -> None:
    """Change the middle element of a tensor. Autograd does not see it."""
    middle = [int(index) for index in torch.unravel_index(torch.tensor(result.numel() // 2), result.shape)]
    mode = torch.inference_mode if result.is_inference() else torch.no_grad
    with mode(), torch.autograd._unsafe_preserve_version_counter(result):
        element = result.detach()[tuple(middle)] if middle else result.detach()
        if result.dtype is torch.bool:
            element.logical_not_()
        elif result.is_complex():
            element.fill_(complex(WRONG, -7))
        elif result.is_floating_point():
            element.fill_(WRONG)
        else:
            element.fill_(next(value for value in WRONG_INTEGERS if value != int(element)))


def _corrupted(trial: Trial) -> Execution:
    execution = _run_on_device(trial)
    results = [output for output in execution.outputs if isinstance(output, Tensor) and output.device.type == "mps"]
    first = next((output for output in results if output.numel() and output.layout is torch.strided), None)
    if first is not None and not first.is_quantized:
        corrupt(first)
    return execution


Trial._run_on_device = _corrupted  # type: ignore[method-assign]
