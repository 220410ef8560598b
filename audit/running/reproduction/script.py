"""Writes a case as a Python program that needs nothing but torch and a Mac, ready for an upstream issue."""

from __future__ import annotations

import math
from textwrap import indent
from typing import Any

import torch
from torch import Tensor

from ....errors import MpsmithError
from ...cases.sources.modules import ModuleCall
from ...model.case import Case
from ...model.group import COMPILED_MODES, DYNAMIC, GroupKey
from ...model.nested import leaves
from ...model.verdicts import Outcome
from .calls import FORM_SOURCE, NO_SCRIPT, written_call
from .forms import PLAIN, lines_of

MOST_ELEMENTS = 2000
# Up to this many equal numbers are written one by one.
FEW_ELEMENTS = 8
INDENT = "    "
PLAIN_TYPES = (bool, int, float, complex, str, torch.dtype, torch.layout, torch.memory_format)

TEMPLATE = '''\
"""{title}

Found by mpsmith{where}: {finding}
"""

import torch

print("torch", torch.__version__)


def inputs(device):
{inputs}
    return args, kwargs


def run(device):
    args, kwargs = inputs(device)
{run}


for device in ("cpu", "mps"):
    try:
        print(device, run(device))
    except Exception as error:
        print(device, type(error).__name__, error)
'''


FORWARD = "return output"
# A compiled call may write wrong values into its arguments.
FORWARD_WITH_ARGUMENTS = "return output, args"
# Two devices draw different numbers, so only their distributions can be compared.
FORWARD_OF_DRAWS = """\
drawn = output.float().cpu()
return [f"{name} {getattr(drawn, name)().item():.4f}" for name in ("min", "mean", "std", "median", "max")]"""
COMPILED_FUNCTION = """\
def compiled(call, device):
    return call if device == "cpu" else torch.compile(call, dynamic={dynamic})
"""
# Tensors may be nested in arguments and outputs, like the parameters of a module.
NESTED_BACKWARD = """\
leaves = torch.utils._pytree.tree_leaves
loss = sum(t.square().sum() for t in leaves(output) if isinstance(t, torch.Tensor) and t.requires_grad)
wanted = [t for t in leaves((args, kwargs)) if isinstance(t, torch.Tensor) and t.requires_grad]
return torch.autograd.grad(loss, wanted, allow_unused=True)"""
BACKWARD = """\
outputs = output if isinstance(output, (tuple, list)) else [output]
loss = sum(t.square().sum() for t in outputs if t.requires_grad)
return torch.autograd.grad(loss, [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad])"""

# Sources whose cases are one plain call. Those of `FORMS` are a call in some form; the others draw, or call twice.
PLAIN_SOURCES = (
    "opinfo",
    "layouts",
    "special values",
    "errors",
    "sizes",
    "schema",
    "schema special values",
    "arguments",
    "tensor layouts",
    "schema tensor layouts",
    "mixed dtypes",
    "schema mixed dtypes",
    "gradients",
    "samples without gradients",
    "modules",
    "compiled situations",
)


def script_of(case: Case, key: GroupKey, outcome: Outcome, *, simulated: bool, metal: str = "") -> str:
    """The case as a program. Raises MpsmithError for a case that cannot be written as one.

    Args:
        case, key, outcome: the case, its group and its outcome.
        simulated: whether the outcome is from the simulated device.
        metal: the Metal that was generated for a call under torch.compile; it is appended as a comment.
    """
    written = written_call(case, key, _text)
    call = written.expression
    args = ", ".join(_text(arg, "device" if i not in case.on_host else '"cpu"') for i, arg in enumerate(case.args))
    inputs = f"args = [{args}]\nkwargs = {_text(case.kwargs)}"
    where = " on a SIMULATED mps device, so check it on a Mac first" if simulated else ""
    finding = f"{outcome.verdict.value}, {outcome.stage}: {outcome.message}".replace('"""', "'''").replace("\\", "/")
    title = f"{call}{f' ({case.title})' if case.title else ''} on mps"
    compiled = key.mode in COMPILED_MODES
    if compiled:
        call, title = f"compiled({call}, device)", f"{title} under torch.compile"
    lines = _run_text(case, key, outcome)
    if compiled:
        lines = lines.replace(FORWARD, FORWARD_WITH_ARGUMENTS)
    run = indent(lines.replace("{call}", call), INDENT)
    text = TEMPLATE.format(title=title, where=where, finding=finding, inputs=indent(inputs, INDENT), run=run)
    if written.definition:
        text = text.replace("\n\ndef run(device)", f"\n\n{written.definition}\n\ndef run(device)")
    if not compiled:
        return text
    function = COMPILED_FUNCTION.format(dynamic=key.mode == DYNAMIC)
    comment = "".join(f"# {line}".rstrip() + "\n" for line in metal.splitlines())
    generated = f"\n# The Metal that Inductor generated:\n{comment}" if metal else ""
    return text.replace("\n\ndef run(device)", f"\n\n{function}\n\ndef run(device)") + generated


def _run_text(case: Case, key: GroupKey, outcome: Outcome) -> str:
    """The lines that compute the output as the case's source does, and return what to print."""
    in_a_form = key.source == FORM_SOURCE or case.form != "plain"
    lines = lines_of(case.title) if in_a_form else PLAIN
    if lines is None or (key.source not in (*PLAIN_SOURCES, FORM_SOURCE) and not case.written):
        raise MpsmithError(f"{key.label} ({case.title}): a few lines of Python cannot repeat this call {NO_SCRIPT}")
    if _share_memory(case):
        raise MpsmithError(f"{key.label} ({case.title}): two views of one storage cannot be written down {NO_SCRIPT}")
    if outcome.stage == "backward" and case.cotangent_layout is not None:
        raise MpsmithError(f"{key.label} ({case.title}): this layout of gradients cannot be written down {NO_SCRIPT}")
    if case.default_device:
        lines = f"with torch.device(device):\n{indent(lines, INDENT)}"
    if outcome.stage != "backward":
        return f"{lines}\n{FORWARD_OF_DRAWS if case.distribution else FORWARD}"
    return f"{lines}\n{NESTED_BACKWARD if isinstance(case.call, ModuleCall) else BACKWARD}"


def _share_memory(case: Case) -> bool:
    """Whether two of the arguments are the same tensor, or views of one storage."""
    tensors = [leaf for leaf in leaves((case.args, case.kwargs)) if isinstance(leaf, Tensor)]
    storages = [t.untyped_storage()._cdata for t in tensors if t.layout is torch.strided]
    return len(set(storages)) < len(storages)


def _text(value: Any, device: str = "device") -> str:
    if isinstance(value, Tensor):
        return _tensor_text(value, device)
    if isinstance(value, list):
        return "[" + ", ".join(_text(item, device) for item in value) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(_text(item, device) for item in value) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {_text(v, device)}" for k, v in value.items()) + "}"
    if isinstance(value, torch.device):
        return "device"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if value is None or isinstance(value, PLAIN_TYPES):
        return repr(value)
    raise MpsmithError(f"an argument of type {type(value).__name__} cannot be written down {NO_SCRIPT}")


def _tensor_text(tensor: Tensor, device: str) -> str:
    too_many = tensor.numel() > MOST_ELEMENTS and not (tensor.layout is torch.strided and _is_one_number(tensor))
    if tensor.layout not in (torch.strided, torch.sparse_coo) or too_many:
        raise MpsmithError(f"a {tensor.layout} tensor of {tensor.numel()} elements cannot be written down {NO_SCRIPT}")
    text = (_sparse_text if tensor.layout is torch.sparse_coo else _strided_text)(tensor.detach(), device)
    return f"{text}.requires_grad_()" if tensor.requires_grad else text


def _sparse_text(tensor: Tensor, device: str) -> str:
    indices, values = (_strided_text(part, device) for part in (tensor._indices(), tensor._values()))
    return f"torch.sparse_coo_tensor({indices}, {values}, {tuple(tensor.shape)}, is_coalesced={tensor.is_coalesced()})"


def _strided_text(tensor: Tensor, device: str) -> str:
    plain = tensor.resolve_conj().resolve_neg()
    shape = tuple(plain.shape)
    if plain.numel() > FEW_ELEMENTS and _is_one_number(plain):
        text = f"torch.full({shape}, {_text(plain.flatten()[0].item())}, dtype={plain.dtype}, device={device})"
    else:
        text = f"torch.tensor({_values_text(plain.flatten().tolist())}, dtype={plain.dtype}, device={device})"
        text = text if plain.dim() == 1 else f"{text}.reshape({shape})"
    if not plain.is_contiguous():
        text = f"torch.empty_strided({shape}, {plain.stride()}, dtype={plain.dtype}, device={device}).copy_({text})"
    return text


def _is_one_number(tensor: Tensor) -> bool:
    """Whether all elements have the same bits, so that 0.0 differs from -0.0; False for NaN."""
    first = tensor.flatten()[:1]
    alike = bool((tensor == first).all())
    return alike and not (tensor.is_floating_point() and bool((tensor.signbit() != first.signbit()).any()))


def _values_text(values: list[Any]) -> str:
    return "[" + ", ".join(repr(v) if not _odd(v) else f'float("{v}")' for v in values) + "]"


def _odd(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
