"""The calls that a generated test makes."""

from __future__ import annotations

import torch

from mpsmith.kernels.verification.conformance import Subject


def test_a_floating_kernel_is_not_called_with_complex_tensors() -> None:
    # One of the recorded calls of float32 has a tensor of complex64.
    cases = Subject("aten::embedding_renorm_", ("embedding_renorm_",))._recorded("float32")
    assert len(cases) > 1
    assert not any(isinstance(x, torch.Tensor) and x.is_complex() for case in cases for x in case.args)
