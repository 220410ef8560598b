"""Defects of generated Metal that are wrong on every device, because the logic of the kernel is wrong."""

from __future__ import annotations

from ..verdicts import CompiledVerdict
from .defect import Certainty, Defect, Report

_PULL = "https://github.com/pytorch/pytorch/pull/"
_ISSUE = "https://github.com/pytorch/pytorch/issues/"

LOGIC = (
    Defect(
        "U1",
        "batch_norm in training updates its running statistics once for each thread",
        """
def program(x, mean, variance):
    torch.nn.functional.batch_norm(x, mean, variance, training=True)
    return mean, variance


inputs = [torch.arange(192.0).sin().reshape(4, 3, 4, 4), torch.zeros(3), torch.ones(3)]
""",
        "Every thread of a threadgroup loads the running mean, then every thread stores 0.9 of it plus 0.1 of the new"
        " one to the same place, with no barrier between. A thread that comes late updates what is updated already.",
        Certainty.LOGIC,
        CompiledVerdict.WRONG,
        (
            Report(
                f"{_PULL}184328",
                "measured the symptom on a Mac; its barrier is inside the Welford reduction and does not order this"
                " load and store",
            ),
        ),
    ),
    Defect(
        "U2",
        "a Python number in where and masked_fill makes 64-bit integers 32 bits wide",
        """
def program(x):
    return torch.where(x < 0, 0, x)


inputs = [torch.tensor([2**40, -7, 5])]
""",
        "The number becomes `auto tmp = 0`, an int, and the other arm of the choice is cast to its type.",
        Certainty.LOGIC,
        CompiledVerdict.WRONG,
    ),
    Defect(
        "U3",
        "argmax of a transposed input gives the place in memory",
        """
def program(x):
    return x.t().argmax()


inputs = [torch.arange(24.0).remainder(11).reshape(4, 6)]
""",
        "The reduction runs over the input in the order of its memory and returns what it counted. 2.15.0 has a"
        " lowering that counts in the order of the program, which an overlay does not have.",
        Certainty.LOGIC,
        CompiledVerdict.WRONG,
        (
            Report(f"{_ISSUE}174073", "the same of Inductor's code for the CPU"),
            Report(f"{_ISSUE}197739", "the same of another back end with torch 2.14.0"),
        ),
    ),
    Defect(
        "U5",
        "intermediate results of 8 and 16 bits do not wrap",
        """
def program(x):
    return (x + x).to(torch.int16)


inputs = [torch.tensor([128, 200, 7], dtype=torch.uint8)]
""",
        "Arithmetic on uchar is done in int and kept in `auto`; only a store to memory cuts it to 8 bits again.",
        Certainty.LOGIC,
        CompiledVerdict.WRONG,
        (Report(f"{_ISSUE}105264", "the same of Inductor's code for the CPU"),),
    ),
    Defect(
        "U6",
        "a fused kernel of more than 31 buffers is not split",
        """
def program(*tensors):
    return sum(tensors)


inputs = [torch.ones(8) for _ in range(40)]
""",
        "All 40 inputs become arguments of one kernel; Metal has 31 buffers.",
        Certainty.LOGIC,
        CompiledVerdict.REJECTED,
        (Report(f"{_ISSUE}141287", "a comment has a Mac's log of the same refusal"),),
    ),
    Defect(
        "U7",
        "special.erfcx is 0 from 4 on and nan from 10 on",
        """
def program(x):
    return torch.special.erfcx(x)


inputs = [torch.tensor([1.0, 5.0, 20.0])]
""",
        "It is computed as exp(x * x) * (1 - erf(x)): the second factor is 0 once erf rounds to 1, the first is"
        " infinite from 10 on. log_ndtr is built on it.",
        Certainty.LOGIC,
        CompiledVerdict.WRONG,
        (Report(f"{_PULL}189291", "added an erfc that does not cancel; exp(x * x) overflows as before"),),
    ),
    Defect(
        "U8",
        "the sum of an integer constant does not compile",
        """
def program(x):
    return torch.ones_like(x, dtype=torch.int64).sum()


inputs = [torch.zeros(40)]
""",
        "The constant becomes `auto tmp = 1`, an int, and goes with an accumulator of long to a template whose two"
        " arguments must be of one type.",
        Certainty.LOGIC,
        CompiledVerdict.REJECTED,
    ),
    Defect(
        "U10",
        "nine operators are not lowered",
        """
def program(x):
    return torch.cosh(x), torch.hypot(x, x)


inputs = [torch.tensor([0.5, 2.0])]
""",
        "Inductor's back end for mps lacks acosh, asinh, cosh, sinh, copysign, frexp, hypot, logical_xor and"
        " nextafter; the compiler raises NotImplementedError, and the eager operator would have worked.",
        Certainty.LOGIC,
        CompiledVerdict.NOT_LOWERED,
        (Report(f"{_PULL}197403", "adds all but nextafter"),),
    ),
    Defect(
        "U11",
        "after one indexing kernel every later kernel of the process checks for errors",
        """
from torch._inductor.utils import run_and_get_code


@torch.compiler.disable
def program(x, index):
    torch.compile(lambda x, index: x[index] + 1)(x, index)
    _, code = run_and_get_code(torch.compile(torch.sin), x)
    return "error_buf" in code[0]


inputs = [torch.ones(10), torch.tensor([1, 2])]
""",
        "The set of headers is an attribute of the class MetalKernel, so what one kernel includes all later ones do;"
        " with error.h comes an argument and a buffer that is read back. Which kernels share a cache entry depends on"
        " what was compiled before.",
        Certainty.LOGIC,
        CompiledVerdict.WRONG,
        compiles_itself=True,
    ),
    Defect(
        "U12",
        "softshrink of nan is 0",
        """
def program(x):
    return torch.nn.functional.softshrink(x)


inputs = [torch.tensor([float("nan"), 1.0])]
""",
        "It is generated as a choice by abs(x) > 0.5, which nan fails.",
        Certainty.LOGIC,
        CompiledVerdict.WRONG,
        (
            Report(f"{_ISSUE}138385", "the same of the eager kernels, mended"),
            Report(f"{_PULL}183710", "the same of the eager kernel of mps, mended"),
        ),
    ),
    Defect(
        "U14",
        "a Python number shifted by a tensor is 32 bits wide",
        """
def program(x):
    return 1 << x


inputs = [torch.tensor([3, 40])]
""",
        "The number becomes `auto tmp = 1`, an int, and is shifted as one.",
        Certainty.LOGIC,
        CompiledVerdict.WRONG,
    ),
    Defect(
        "U15",
        "log1p and expm1 of small numbers are 0",
        """
def program(x):
    return torch.log1p(x), torch.expm1(x)


inputs = [torch.tensor([1e-9, 1e-4, 1.0])]
""",
        "They are computed as log(x + 1) and exp(x) - 1, which round to 0 what they are there for. softplus, logsigmoid"
        " and elu are built on them. Metal's headers of torch have both functions.",
        Certainty.LOGIC,
        CompiledVerdict.WRONG,
        (
            Report(f"{_ISSUE}191038", "the sign of expm1(-0.0) on a Mac, of the same cause"),
            Report(f"{_PULL}154936", "the same of log1p in the eager kernel, mended"),
        ),
    ),
    Defect(
        "U16",
        "erfc is 0 from 4 on",
        """
def program(x):
    return torch.erfc(x)


inputs = [torch.tensor([1.0, 5.0])]
""",
        "It is computed as 1 - erf(x), and erf rounds to 1.",
        Certainty.LOGIC,
        CompiledVerdict.WRONG,
        (Report(f"{_PULL}189291", "adds an erfc that does not cancel"),),
    ),
    Defect(
        "U20",
        "what is added to memory after a reduction is added once for each thread",
        """
def program(x, index):
    return torch.zeros(3, device=x.device).index_put_((index,), x.sum(1), accumulate=True)


inputs = [torch.ones(2, 40), torch.tensor([0, 1])]
""",
        "Every thread of the threadgroup has the sum, and every thread adds it with `atomic_add`; a plain store is left"
        " to the first thread. The backward of multi_margin_loss is such a kernel.",
        Certainty.LOGIC,
        CompiledVerdict.WRONG,
    ),
    Defect(
        "U21",
        "multilabel_margin_loss counts the first class once for each place behind the labels",
        """
def program(x, target):
    return torch.nn.functional.multilabel_margin_loss(x, target)


inputs = [torch.tensor([[0.5, 0.0]]), torch.tensor([[1, -1]])]
""",
        "Places from the first -1 on become class 0 so that they can be gathered, and still take part in the sum. That"
        " is torch's decomposition, the same for every device.",
        Certainty.LOGIC,
        CompiledVerdict.WRONG,
        (
            Report(f"{_ISSUE}141017", "the same with the back end aot_eager"),
            Report(f"{_PULL}189552", "mends the decomposition, which an overlay does not have"),
        ),
    ),
    Defect(
        "U22",
        "with cpp_wrapper the host code does not compile",
        """
@torch.compiler.disable
def program(x):
    if x.device.type == "cpu":
        return torch.sin(x)
    return torch.compile(torch.sin, options={"cpp_wrapper": True})(x)


inputs = [torch.ones(4)]
""",
        "The host code calls get_mps_lib_0_handle(), which is generated for AOTInductor alone.",
        Certainty.LOGIC,
        CompiledVerdict.NOT_LOWERED,
        compiles_itself=True,
    ),
    Defect(
        "U23",
        "the kernels of both branches of cond have one name",
        """
def program(x):
    return torch.cond(x.sum() > 0, lambda t: t.sin(), lambda t: t.cos(), (x,))


inputs = [torch.ones(4)]
""",
        "Each branch is scheduled by its own scheduler, which counts its kernels from 0, and all kernels are in"
        " one source. 2.14.1 counts them for the whole program.",
        Certainty.LOGIC,
        CompiledVerdict.REJECTED,
        (Report(f"{_ISSUE}187852", "the same of while_loop, with what a Mac's compiler says"),),
    ),
    Defect(
        "U24",
        "the gradient of avg_pool with ceil_mode divides the last window by the whole kernel",
        """
def program(gradient, x):
    return torch.ops.aten.avg_pool2d_backward(gradient, x, [1, 3], [1, 2], [0, 0], True, True, None)


inputs = [torch.ones(1, 1, 1, 2), torch.ones(1, 1, 1, 4)]
""",
        "The last window covers two elements, and the forward divides by two. The lowering of the backward divides by"
        " the size of the kernel unless there is padding, for every device.",
        Certainty.LOGIC,
        CompiledVerdict.WRONG,
        (Report(f"{_ISSUE}198119", "the same on the CPU and on CUDA with torch 2.14.0"),),
    ),
    Defect(
        "U30",
        "the sum of a constant over more than 1,024 elements counts 1,024 of them",
        """
def program(x):
    return torch.ones_like(x).sum()


inputs = [torch.zeros(3000)]
""",
        "A longer reduction is a loop around what is loaded; of a constant nothing is loaded, so that the loop is left"
        " out, and each of the 1,024 threads gives its constant once. prod and mean are wrong in the same way.",
        Certainty.LOGIC,
        CompiledVerdict.WRONG,
    ),
)
