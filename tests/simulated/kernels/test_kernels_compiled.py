"""Kernels inside of compiled graphs: every family in one graph, forward and backward, with sizes that change."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.utils import counters
from torch._inductor import config as inductor
from torch.compiler import config as compiler
from torch.nn import functional

from mpsmith import kernels
from mpsmith.kernels.runtime import catalog
from mpsmith.kernels.runtime.registration import counting

if TYPE_CHECKING:
    from conftest import FreshPython
from support.needs import needs_metal_on_host

needs_metal_on_host()

pytestmark = pytest.mark.usefixtures("nothing_registered")


@pytest.fixture(autouse=True)
def compiled_anew() -> Iterator[None]:
    """Nothing of other tests or of former runs is taken for compiled."""
    torch._dynamo.reset()
    counters.clear()
    with inductor.patch(force_disable_caches=True):
        yield
    torch._dynamo.reset()


def inputs(n: int) -> dict[str, Tensor]:
    """For `everything`; those of floats have gradients."""
    generator = torch.Generator().manual_seed(n)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator)

    matrix = normal(2, n, n)
    labels = torch.full((3, n), -1)
    labels[:, :2] = torch.arange(2)
    return {
        "vector": normal(n) * 3,
        "unit": torch.rand(n, generator=generator) * 0.98 + 0.01,
        "cube": normal(1, 2, 6, 6, 6),  # torch compiles pooling with windows that adapt anew for each size
        "image": normal(1, 2, 10, 10),
        "places": torch.rand(1, 2, 2, generator=generator),
        "samples": torch.rand(1, 2, 3, generator=generator),
        "scales": torch.tensor([0.11, 0.23, 0.37]),
        "rows": normal(3, n),
        "classes": torch.arange(3),
        "labels": labels,
        "symmetric": matrix + matrix.mT + 9 * torch.eye(n),
        "positions": torch.arange(n - 1),
        "steps": normal(n, 2, 5),
        "targets": torch.tensor([[1, 2], [3, 3]]),
        "segments": torch.tensor([[2, n - 4, 2]] * 3),
    }


def everything(x: dict[str, Tensor]) -> dict[str, Any]:
    """What the operators of each family give, by family."""
    vector, unit, rows, symmetric = x["vector"], x["unit"], x["rows"], x["symmetric"]
    held = vector.detach()
    parameter, gradient, total, step = (
        held.clone(),
        unit.detach().clone(),
        unit.detach().clone(),
        torch.ones_like(held[0]),
    )
    torch._fused_adagrad_(
        [parameter], [gradient], [total], [step], lr=0.1, lr_decay=0.0, weight_decay=0.1, eps=1e-8, maximize=False
    )
    places, cube = x["places"].detach(), x["cube"].detach()
    factors, pivots, _ = torch.linalg.ldl_factor_ex(symmetric.detach())
    return {
        "adaptive_avg_pool3d": functional.adaptive_avg_pool3d(x["cube"], 2),
        "adaptive_max_pool3d": functional.adaptive_max_pool3d(x["cube"], 2),
        "airy": torch.special.airy_ai(held),
        "count_distributions": (
            torch.poisson(torch.zeros_like(rows)),
            torch.binomial(torch.full_like(held, 3.0), torch.ones_like(held)),
        ),
        "ctc_loss": functional.ctc_loss(x["steps"].log_softmax(-1), x["targets"], (6, 5), (2, 1), reduction="sum"),
        "eig": torch.linalg.eigvals(symmetric.detach()).abs().sum(-1),
        "eigh": torch.linalg.eigvalsh(symmetric),
        "embedding_renorm": torch.embedding_renorm_(rows.detach().clone(), x["classes"], 1.0, 2.0),
        "extremum": torch.max(held, out=torch.empty((), device=held.device)),
        "fake_quantize": torch.fake_quantize_per_tensor_affine(vector, 0.1, 0, -128, 127),
        "fake_quantize_channels": (
            torch.fake_quantize_per_channel_affine(rows.detach(), x["scales"].detach(), x["classes"].int(), 0, -5, 11),
            torch.ops.aten._fake_quantize_learnable_per_channel_affine(
                rows, x["scales"], torch.zeros_like(x["scales"]), 0, -5, 11
            ),
        ),
        "fractional_max_pool2d": functional.fractional_max_pool2d(x["image"], 2, 3, _random_samples=places),
        "fractional_max_pool3d": functional.fractional_max_pool3d(
            x["cube"], 2, 3, _random_samples=x["samples"].detach()
        ),
        "frexp": torch.frexp(held),
        "fused_adagrad": (parameter, total),
        "glu": torch.ops.aten.glu_jvp(functional.glu(cube, 1), cube, cube, 1),
        "hash_tensor": torch.hash_tensor(rows.detach(), 1).view(torch.int64),
        "heaviside": torch.heaviside(held, unit.detach()),
        "int_mm": torch._int_mm(*[symmetric.detach()[0].round().to(torch.int8)] * 2),
        "ldl": torch.linalg.ldl_solve(factors, pivots, symmetric.detach()),
        "logspace": torch.logspace(-3, 3, 7, out=torch.empty(7, device=held.device)),
        "logit": torch.logit(unit, 1e-6),
        "matrix_exp": torch.linalg.matrix_exp(symmetric * 0.05),
        "mode": torch.mode(rows.round(), -1).values,
        "multi_margin_loss": functional.multi_margin_loss(rows, x["classes"]),
        "multilabel_margin_loss": functional.multilabel_margin_loss(rows, x["labels"]),
        "nested": torch.ops.aten._jagged_to_padded_dense_forward(rows.detach(), [x["classes"]], [3]),
        "normal_distribution": (torch.special.ndtri(unit), torch.special.log_ndtr(vector * 9)),
        "orthogonal_polynomials": torch.special.legendre_polynomial_p(held, torch.full_like(held, 3.0)),
        "pdist": functional.pdist(rows),
        "put_take": (torch.take(vector, x["positions"]), held.clone().put_(x["positions"], unit.detach()[1:])),
        "qr_reflectors": torch.geqrf(symmetric.detach()),
        "rearrange": torch.channel_shuffle(x["image"], 2),
        "rrelu": functional.rrelu(vector, 0.25, 0.25, training=True),
        "segment_reduce": torch.segment_reduce(rows, "sum", lengths=x["segments"], axis=1),
        "shrink": functional.softshrink(vector),
        "svd": torch.linalg.svdvals(symmetric),
        "upsample_antialias": functional.interpolate(x["image"], (4, 5), mode="bicubic", antialias=True),
        "upsample_antialias_forward": torch.ops.aten._upsample_lanczos2d_aa(x["image"], [4, 5], False),
        "variance": torch.var(rows.detach(), 1, out=torch.empty(3, device=held.device)),
    }


def results(function: Any, values: dict[str, Tensor], device: str) -> tuple[dict[str, Any], dict[str, Tensor | None]]:
    """What it gives, and the gradients of its arguments."""
    given = {name: value.to(device) for name, value in values.items()}
    leaves = {name: value.requires_grad_() for name, value in given.items() if value.is_floating_point()}
    outputs = function(given)
    flat = [tensor for output in outputs.values() for tensor in (output if isinstance(output, tuple) else (output,))]
    torch.stack([tensor.float().sum() for tensor in flat if tensor.requires_grad]).sum().backward()
    return outputs, {name: leaf.grad for name, leaf in leaves.items()}


def compare(what: str, mine: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        for part, other in zip(mine, expected, strict=True):
            compare(what, part, other)
    elif expected is not None:
        message = f"{what}: {mine.cpu()}, not {expected}"
        torch.testing.assert_close(mine.detach().cpu(), expected.detach(), rtol=1e-3, atol=1e-4, msg=message)


def test_compiles_every_family_in_one_dynamic_graph() -> None:
    overloads = [kernel.overload for kernel in catalog.all_kernels() if kernel.applies is None]
    compiled = torch.compile(everything, fullgraph=True, dynamic=True)
    with counting(*overloads) as calls:
        for n in (8, 12):  # no other size is the same, which torch would take for a rule
            mine, gradients = results(compiled, inputs(n), "mps")
            expected, cpu_gradients = results(everything, inputs(n), "cpu")
            assert set(mine) <= set(catalog.families())
            for family, output in mine.items():
                compare(family, output, expected[family])
            for name, gradient in gradients.items():
                compare(f"gradient of {name}", gradient, cpu_gradients[name])
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]
    extern = {kernel.operator for family in mine for kernel in catalog.family(family) if kernel.extern}
    extern -= {"aten::special_laguerre_polynomial_l"}  # one of the two polynomials is enough
    assert extern <= {overload.split(".")[0] for overload in calls}  # compiled code called our kernels


def test_compiles_scaled_mm() -> None:
    x = torch.arange(-128, 128).reshape(16, 16).to(torch.float8_e4m3fn)
    scale = torch.tensor(0.5)
    compiled = torch.compile(lambda x, scale: torch._scaled_mm(x, x.t(), scale, scale, out_dtype=torch.float32))
    with counting("_scaled_mm") as calls:
        assert torch.equal(compiled(x.to("mps"), scale.to("mps")).cpu(), compiled(x, scale))
    assert calls["aten::_scaled_mm.out"]


def test_inductor_is_unchanged_without_our_kernel() -> None:
    airy = torch.compile(lambda x: torch.special.airy_ai(x), fullgraph=True)
    x = torch.tensor([0.5, -2.0])
    with compiler.patch(cache_key_tag="of mine"):
        with kernels.use("special_airy_ai"):
            torch.testing.assert_close(airy(x.to("mps")).cpu(), torch.special.airy_ai(x))
            assert compiler.cache_key_tag == "of mine mpsmith.kernels(aten::special_airy_ai)"
        assert compiler.cache_key_tag == "of mine"
    torch._dynamo.reset()
    with pytest.raises(Exception, match="does not implement ops"):
        airy(x.to("mps"))


def test_losses_on_the_cpu_are_still_decomposed() -> None:
    rows, classes = torch.tensor([[0.1, 0.9, 0.3]]), torch.tensor([1])
    with kernels.use("multi_margin_loss"):
        compiled = torch.compile(functional.multi_margin_loss, backend="aot_eager_decomp_partition")
        assert math.isclose(compiled(rows, classes).item(), functional.multi_margin_loss(rows, classes).item())


def test_first_compilation_patches_inductor(fresh_python: FreshPython) -> None:
    fresh_python(
        """
        assert "torch._inductor.lowering" not in sys.modules
        x = torch.tensor([0.5, -2.0])
        compiled = torch.compile(torch.special.airy_ai, fullgraph=True)(x.to("mps"))
        torch.testing.assert_close(compiled.cpu(), torch.special.airy_ai(x))
        """,
        kernels_on="installed",
    )
