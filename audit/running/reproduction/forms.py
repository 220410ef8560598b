"""The forms of a call as a program writes them: the lines that compute `output` from `args` and `kwargs` on `device`.

They repeat what `audit.cases.sources.forms` and `operands` do, without the parts that only a judge uses. `{call}` is
replaced by the call itself.
"""

from __future__ import annotations

from textwrap import indent

from ...cases.sources.forms import GUARD

PLAIN = "output = {call}(*args, **kwargs)"


def lines_of(title: str) -> str | None:
    """The lines for the form that the title of a case names; None for an unknown form."""
    if title.startswith("autocast "):
        dtype = title.removeprefix("autocast ")
        return _indented(f"with torch.autocast(device, dtype=torch.{dtype}):")
    return FORMS.get(title)


def _indented(context: str) -> str:
    return f"{context}\n    {PLAIN}"


def _out(place: str, elements: str, dtype: str = "like.dtype") -> str:
    """A call with out=, a view of a vector of ones; the memory around the output is shown as well."""
    return f"""\
plain = {{call}}(*args, **kwargs)
outs, storages = [], []
for like in [plain] if isinstance(plain, torch.Tensor) else plain:
    storage = torch.ones({elements}, dtype={dtype}, device=device)
    storages.append(storage)
    outs.append({place})
{{call}}(*args, **kwargs, out=outs[0] if isinstance(plain, torch.Tensor) else tuple(outs))
output = [*outs, *storages]"""


_AROUND = f"like.numel() + {2 * GUARD}"
_INNER = f"storage[{GUARD} : {GUARD} + like.numel()]"
_EXACT = f"{_INNER}.view(like.shape)"

FORMS: dict[str, str] = {
    "method": PLAIN,
    "inference mode": _indented("with torch.inference_mode():"),
    "no_grad": _indented("with torch.no_grad():"),
    "no_grad, out=": "with torch.no_grad():\n" + indent(_out(_EXACT, _AROUND), "    "),
    "deterministic algorithms": f"torch.use_deterministic_algorithms(True)\n{PLAIN}",
    "in place": f"""\
first, *rest = args
storage = torch.ones(first.numel() + {2 * GUARD}, dtype=first.dtype, device=device)
target = storage[{GUARD} : {GUARD} + first.numel()].view(first.shape).copy_(first)
returned = {{call}}(target, *rest, **kwargs)
output = [target, returned is target, storage]""",
    "out= exact": _out(_EXACT, _AROUND),
    "out= transposed": _out(
        f"{_INNER}.view(like.shape[::-1]).permute(*range(like.dim() - 1, -1, -1)) if like.dim() else {_EXACT}", _AROUND
    ),
    "out= every other element": _out(
        f"storage[{GUARD} : {GUARD} + 2 * like.numel() : 2].view(like.shape)", f"2 * like.numel() + {2 * GUARD}"
    ),
    "out= empty": _out("storage", "0"),
    "out= one element too large": _out(
        f"storage[{GUARD} : {GUARD + 1} + like.numel()]", f"like.numel() + {2 * GUARD + 1}"
    ),
    "out= of another dtype": _out(_EXACT, _AROUND, "torch.int32 if like.dtype is torch.float32 else torch.float32"),
    "out= is the input": """\
first, *rest = args
target = first.clone()
{call}(target, *rest, **kwargs, out=target)
output = target""",
    "out= overlaps the input": """\
first, *rest = args
storage = first.new_zeros(first.numel() + 1)
source = storage[:-1].view(first.shape).copy_(first)
output = {call}(source, *rest, **kwargs, out=storage[1:].view(first.shape))""",
    "second derivative": """\
values = {call}(*args, **kwargs)
values = [t for t in (values if isinstance(values, (tuple, list)) else [values]) if t.requires_grad]
leaves = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
ones = [torch.ones_like(t) for t in values]
first = torch.autograd.grad(values, leaves, ones, create_graph=True, allow_unused=True)
output = [g for g in first if g is not None]""",
    "forward mode": """\
from torch.autograd import forward_ad

with forward_ad.dual_level():
    follows = [isinstance(a, torch.Tensor) and a.requires_grad for a in args]
    duals = [forward_ad.make_dual(a.detach(), torch.ones_like(a)) if f else a for a, f in zip(args, follows)]
    values = {call}(*duals, **kwargs)
    output = [tuple(forward_ad.unpack_dual(t)) for t in (values if isinstance(values, (tuple, list)) else [values])]""",
}

# Forms that call a method of torch.Tensor, and what its name has behind that of the operator.
METHODS = {"method": "", "in place": "_"}
