"""Every convention that an audit reaches launches a release's kernels, and what they compute is right or explained.

The default audit puts all sources through the conventions; this is a small part of it, for two releases.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from mpsmith.audit.store.store import Store
from mpsmith.simulator.shipped.conventions import FAMILIES
from support.shipped_kernels import RELEASES, library_of

pytestmark = [pytest.mark.network, pytest.mark.timeout(1800)]

OPERATORS = (
    *("index_put", "index_add", "argmax", "sub", "searchsorted", "cat", "conj_physical", "isin", "roll", "cholesky"),
    *("nn.functional.embedding_bag", "embedding_dense_backward", "fill", "flip", "nn.functional.glu", "gather"),
    *("grid_sampler_2d", "nll_loss2d_backward", "nonzero", "native_layer_norm", "nn.functional.pad", "clamp", "mm"),
    *("nn.functional.max_pool2d", "uniform", "linspace", "amax", "logcumsumexp", "softmax", "sort", "addcmul"),
    *("tril", "exp", "unfold_backward", "nn.functional.interpolate", "linalg_vector_norm", "linalg_cross"),
)
# Families without a launch here: rare calls, and what a release computes with MPSGraph.
RARE = {
    "assertions",
    "attention",
    "distances",
    "graph_operators",
    "nonzero",
    "optimizers",
    "packed_products",
    "products",
}
LACKING = {"2.13.0": {"along_index", "flips", "gated_linear", "losses", "softmax"}, "2.15.0": {"factorizations"}}


@pytest.mark.parametrize("release", RELEASES)
def test_conventions_launch_and_results_are_right_or_explained(release: str, tmp_path: Path) -> None:
    library_of(release)  # skips where it is not to be had
    store = tmp_path / "store.sqlite"
    chosen = ("--ops", ",".join(OPERATORS), "--sources", "opinfo,schema", "--dtypes", "float32", "--samples", "quick")
    words = ("audit", "--device", "simulated", "--shipped", release, *chosen, "--workers", "2", "--store", str(store))
    subprocess.run([sys.executable, "-m", "mpsmith", *words], check=True)
    unexplained = [sys.executable, "-m", "mpsmith", "report", "--unexplained", "--store", str(store)]
    assert subprocess.run(unexplained, check=False).returncode == 0
    with Store.open(store) as opened:
        launched = {name for _, name, launches in opened.launches(opened.latest_run().id) if launches.cases}
    planners = {name: import_module(f"mpsmith.simulator.shipped.conventions.{name}").PLANNERS for name in FAMILIES}
    without = {name for name in FAMILIES if launched.isdisjoint(f"aten::{overload}" for overload in planners[name])}
    assert without == RARE | LACKING[release]
