"""What the self-test compares of a call: values, arguments, the memory around them, and not undefined memory."""

from __future__ import annotations

import torch

from mpsmith.audit.cases.calls.invocation import overload_of
from mpsmith.audit.self_test.observation import differs, execute


def test_memory_around_an_argument_counts() -> None:
    overload = overload_of("aten::exp.out")
    larger = torch.zeros(9)
    calls = [{"self": torch.ones(3), "out": larger[3:6]}]
    (before,) = execute(overload, calls, "cpu")
    larger[0] = 1
    (after,) = execute(overload, calls, "cpu")
    assert differs(before, after)


def test_ignores_memory_of_resized_tensors() -> None:
    overload = overload_of("aten::smooth_l1_loss.out")
    out = torch.ones(())  # made as large as the input for the terms, and then as small as the result
    arguments = {"self": torch.ones(5), "target": torch.zeros(5), "reduction": 1, "beta": 1.0, "out": out}
    ((_, _, around, _),) = execute(overload, [arguments], "cpu")
    assert [memory.numel() for memory in around] == [20, 20]
