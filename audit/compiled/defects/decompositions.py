"""Defects in the input of Inductor instead of its Metal: decompositions and traced gradients."""

from __future__ import annotations

from ..verdicts import CompiledVerdict
from .defect import Certainty, Defect, Report

_PULL = "https://github.com/pytorch/pytorch/pull/"
_ISSUE = "https://github.com/pytorch/pytorch/issues/"

DECOMPOSITIONS = (
    Defect(
        "U25",
        "gradients of soft_margin_loss are 0 where the loss is small",
        """
def program(gradient, x, target):
    return torch.ops.aten.soft_margin_loss_backward(gradient, x, target, 0)


inputs = [torch.full((2,), 1e9), torch.tensor([18.0, 25.0]), torch.ones(2)]
""",
        "The decomposition takes 1 from a sigmoid, which is 1 from about 17 on; eager computes what is left of it. That"
        " is the same for every device.",
        Certainty.LOGIC,
        CompiledVerdict.WRONG,
    ),
    Defect(
        "U26",
        "some _foreach operators cannot be traced with their gradients",
        """
@torch.compiler.disable
def program(x, y, other):
    def add(x, y, other):
        return torch._foreach_add([x, y], other)

    call = add if x.device.type == "cpu" else torch.compile(add)
    x, y, other = (each.clone().requires_grad_() for each in (x, y, other))
    return tuple(each.detach() for each in call(x, y, other))


inputs = [torch.ones(2), torch.ones(3), torch.tensor(2.0)]
""",
        "The derivative of _foreach_add, _foreach_mul and _foreach_div with a tensor gives as many gradients as there"
        " are tensors in the list, for one argument. Eager raises in the backward; a compiled call has to trace that"
        " first, and raises where the result alone is wanted. _foreach_addcdiv does so where a list has more tensors"
        " than they have rows: select(): index out of range.",
        Certainty.LOGIC,
        CompiledVerdict.NOT_LOWERED,
        (
            Report(f"{_ISSUE}144580", "the backward of eager calls"),
            Report(f"{_PULL}188258", "sums the gradients; open on 22 November 2026"),
        ),
        compiles_itself=True,
    ),
    Defect(
        "U27",
        "linalg.svd has no gradient",
        """
@torch.compiler.disable
def program(x):
    def values(x):
        return torch.linalg.svd(x)[1]

    call = values if x.device.type == "cpu" else torch.compile(values)
    x = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(call(x).sum(), x, allow_unused=True)
    return torch.zeros_like(x) if gradient is None else gradient


inputs = [torch.tensor([[3.0, 1.0], [1.0, 2.0]])]
""",
        "Its fallback to the CPU is registered for linalg_svd, which is composite and gets its derivative from"
        " _linalg_svd. The eager call has one on the simulated device.",
        Certainty.LOGIC,
        CompiledVerdict.WRONG,
        compiles_itself=True,
    ),
    Defect(
        "U28",
        "special.airy_ai and special.laguerre_polynomial_l are not lowered",
        """
def program(x):
    return torch.special.airy_ai(x)


inputs = [torch.tensor([0.5, 2.0])]
""",
        "Inductor's back end for mps has no such operation. mps has no kernel either, so that the eager call falls"
        " back.",
        Certainty.LOGIC,
        CompiledVerdict.NOT_LOWERED,
        (
            Report(f"{_PULL}195264", "adds airy_ai, with its lowering"),
            Report(f"{_PULL}195225", "adds a kernel of laguerre_polynomial_l"),
        ),
    ),
    Defect(
        "U29",
        "native_batch_norm in evaluation returns statistics that eager leaves empty",
        """
def program(x, mean, variance):
    return torch.native_batch_norm(x, None, None, mean, variance, False, 0.1, 1e-5)


inputs = [torch.arange(12.0).reshape(2, 3, 2), torch.zeros(3), torch.ones(3)]
""",
        "The decomposition gives the running mean and its inverse deviation for every device but the CPU, whose two"
        " results have no element.",
        Certainty.LOGIC,
        CompiledVerdict.WRONG,
        (
            Report(f"{_ISSUE}85960", "the same of CUDA's eager kernel"),
            Report(f"{_ISSUE}100985", "the same of the sizes that tracing sees"),
            Report(f"{_PULL}94351", "made the eager results of mps empty, in 2023"),
        ),
    ),
)
