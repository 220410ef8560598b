import subprocess
import sys
from pathlib import Path

import pytest
import torch

from mpsmith.audit.releases.surface import (
    DECIDED_BY,
    Dispatch,
    Surface,
    Unreachable,
    installed_surface,
    native_functions,
    surface_of,
)
from mpsmith.audit.releases.surface.name_patterns import select_names
from mpsmith.audit.releases.surface.reachability import NEVER_BUILT, RULES, RULES_BY_NAME
from mpsmith.cache import fingerprint_of_code, source_files
from mpsmith.errors import MpsmithError
from support.dispatch_tables import check_against_dispatcher, mps_entry

YAML = b"""
- func: relu(Tensor self) -> Tensor
  dispatch: {CPU: relu, MPS: relu_mps, SparseMPS: relu_sparse}
  autogen: relu.out
- func: heaviside.out(Tensor self, Tensor values, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch: {"CPU, CUDA": heaviside_out}
- func: heaviside(Tensor self, Tensor values) -> Tensor
  structured_delegate: heaviside.out
- func: sin.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch: {CPU: sin_out, MPS: sin_out_mps, SparseMPS: sin_sparse_out}
- func: sin(Tensor self) -> Tensor
  structured_delegate: sin.out
- func: matmul(Tensor self, Tensor other) -> Tensor
- func: isnan(Tensor self) -> Tensor
  dispatch: {CompositeExplicitAutograd: isnan}
- func: mean.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch: {CompositeExplicitAutogradNonFunctional: mean_out}
- func: embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)
  dispatch: {CPU: embedding_renorm_cpu_}
- func: cudnn_convolution(Tensor self) -> Tensor
  dispatch: {CUDA: cudnn_convolution}
  autogen: cudnn_convolution.out
- func: mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor
  dispatch: {CUDA: mm_dtype}
"""

DERIVATIVES = b"""
- name: relu(Tensor self) -> Tensor
  self: threshold_backward(grad, result, 0)
- name: heaviside(Tensor self, Tensor values) -> Tensor
  self: not_implemented("heaviside")
  result: auto_element_wise
- name: sin(Tensor self) -> Tensor
  self: non_differentiable
"""


EMPTY_DISPATCH = b"""
- func: prelu(Tensor self, Tensor weight) -> Tensor
  autogen: prelu.out
- func: avg_pool1d(Tensor self, int[1] kernel_size) -> Tensor
  tags: core
  autogen: avg_pool1d.out
- func: _nested_get_values(Tensor(a) self) -> Tensor(a)
  dispatch: {}
"""


@pytest.fixture
def small() -> Surface:
    return surface_of(YAML, DERIVATIVES, "2.13.0")


def dispatch_of(surface: Surface, name: str) -> Dispatch:
    return surface.by_name[f"aten::{name}"].dispatch


@pytest.mark.parametrize(
    ("name", "dispatch"),
    [
        ("relu", Dispatch.NATIVE),
        ("relu.out", Dispatch.COMPOSITE_EXPLICIT),
        ("heaviside.out", Dispatch.MISSING),
        ("heaviside", Dispatch.MISSING),
        ("sin", Dispatch.STRUCTURED_DELEGATE),
        ("matmul", Dispatch.COMPOSITE_IMPLICIT),
        ("isnan", Dispatch.COMPOSITE_EXPLICIT),
        ("mean.out", Dispatch.COMPOSITE_EXPLICIT),
        ("embedding_renorm_", Dispatch.ALWAYS_FALLS_BACK),
        ("mm.dtype", Dispatch.MISSING_EVERYWHERE),
    ],
)
def test_dispatch(small: Surface, name: str, dispatch: Dispatch) -> None:
    assert dispatch_of(small, name) is dispatch


def test_declarations_without_kernels_are_not_composite() -> None:
    surface = surface_of(EMPTY_DISPATCH, None, "2.13.0")
    assert {overload.name: overload.dispatch for overload in surface.overloads} == {
        "aten::prelu": Dispatch.COMPOSITE_IMPLICIT,
        "aten::prelu.out": Dispatch.MISSING_EVERYWHERE,
        "aten::avg_pool1d": Dispatch.COMPOSITE_IMPLICIT,
        "aten::avg_pool1d.out": Dispatch.COMPOSITE_EXPLICIT,
        "aten::_nested_get_values": Dispatch.MISSING_EVERYWHERE,
    }


def test_delegates_name_their_out_overload(small: Surface) -> None:
    assert small.by_name["aten::heaviside"].delegates_to == "aten::heaviside.out"
    assert small.by_name["aten::relu"].delegates_to is None


def test_a_delegate_does_not_inherit_sparse_kernels(small: Surface) -> None:
    assert small.by_name["aten::sin.out"].sparse
    assert not small.by_name["aten::sin"].sparse


def test_only_gradients_are_autograd_formulas(small: Surface) -> None:
    assert [overload.name for overload in small.overloads if overload.has_autograd_formula] == ["aten::relu"]


def test_unreachable_overloads_stay_with_rule_and_reason(small: Surface) -> None:
    reach = small.by_name["aten::cudnn_convolution"].reach
    assert reach == Unreachable("cuda-libraries", RULES_BY_NAME["cuda-libraries"].reason)
    assert small.by_name["aten::cudnn_convolution.out"].reach == reach
    assert small.by_name["aten::mm.dtype"].reachable


def test_by_operator_groups_overloads(small: Surface) -> None:
    assert [overload.name for overload in small.by_operator["aten::relu"]] == ["aten::relu", "aten::relu.out"]
    assert sum(small.counts().values()) == len(small.overloads) == 13


def test_the_installed_surface_is_computed_without_torch_and_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path))
    program = (
        "import sys; from mpsmith.audit.releases.surface import *; installed_surface(); "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    (cached,) = (tmp_path / "surface").iterdir()
    monkeypatch.setattr(native_functions, "parse", lambda *_: pytest.fail("the cache was not used"))
    first = installed_surface()
    monkeypatch.undo()
    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path))
    cached.write_text(cached.read_text()[:5000])
    assert installed_surface() == first


def imported_modules(name: str) -> set[str]:
    """The modules of mpsmith that this one imports, and those that they import, without `mpsmith.`."""
    program = (
        f"import sys, importlib; importlib.import_module('mpsmith.{name}')\n"
        "print(*(n.removeprefix('mpsmith.') for n in sys.modules if n.startswith('mpsmith.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_everything_that_the_surface_imports_decides_its_cache() -> None:
    deciding = {path for name in DECIDED_BY for path in source_files(name)}
    for module in imported_modules("audit.releases.surface") - {"audit", "cache", "registry"}:
        assert set(source_files(module)) <= deciding, module


@pytest.mark.parametrize(
    "changed", ["audit/releases/surface/overloads.py", "audit/releases/releases.json", "errors.py"]
)
def test_the_cached_surface_depends_on_code_and_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path))
    installed_surface()
    read = Path.read_bytes

    def read_changed(path: Path) -> bytes:
        return read(path) + b" " if path.as_posix().endswith(changed) else read(path)

    fingerprint_of_code.cache_clear()
    monkeypatch.setattr(Path, "read_bytes", read_changed)
    installed_surface()
    monkeypatch.undo()
    fingerprint_of_code.cache_clear()
    assert len(list((tmp_path / "surface").iterdir())) == 2


def test_an_unwritable_cache_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path / "file" / "below"))
    assert installed_surface().overloads


@pytest.mark.skipif(
    not native_functions.installed_release().startswith("2.13.0"), reason="the figures are those of torch 2.13.0"
)
def test_figures_of_torch_2_13() -> None:
    summary = installed_surface().summary()
    assert (summary.listed, summary.native, summary.native_operators) == (2584, 890, 418)
    assert (summary.missing, summary.missing_operators) == (187, 127)
    falling_back = [o.name for o in installed_surface().overloads if o.dispatch is Dispatch.ALWAYS_FALLS_BACK]
    assert falling_back == ["aten::embedding_renorm_", "aten::linalg_svd", "aten::linalg_svd.U"]
    assert dispatch_of(installed_surface(), "_slow_conv2d_forward") is Dispatch.MISSING


def test_every_rule_matches_something_installed_and_never_a_kernel() -> None:
    overloads = installed_surface().overloads
    used = {overload.reach.rule for overload in overloads if isinstance(overload.reach, Unreachable)}
    assert used == {*(rule.name for rule in RULES), NEVER_BUILT.name}
    assert all(overload.reachable for overload in overloads if overload.dispatch.has_kernel or overload.sparse)
    assert len(RULES_BY_NAME) == len(RULES) + 1


def test_overloads_never_built_are_those_unknown_to_the_dispatcher() -> None:
    registered = set(torch._C._dispatch_get_all_op_names())
    never_built = {o.name for o in installed_surface().overloads if o.reach == never_built_reach()}
    assert never_built == {o.name for o in installed_surface().overloads if o.name not in registered}
    assert "aten::prelu.out" in never_built


def never_built_reach() -> Unreachable:
    return Unreachable(NEVER_BUILT.name, NEVER_BUILT.reason)


@pytest.mark.parametrize(
    "name",
    [
        "mode",
        "heaviside",
        "_ctc_loss",
        "_foreach_add.List",
        "channel_shuffle",
        "fake_quantize_per_tensor_affine_cachemask",
    ],
)
def test_operators_that_users_reach(name: str) -> None:
    assert installed_surface().by_name[f"aten::{name}"].reachable


def test_dump_lines() -> None:
    dump = "CPU: registered at x.cpp:1 [kernel]\nMPS: registered at y.cpp:3 [default backend kernel]\nIPU: z [kernel]\n"
    assert mps_entry(dump) == ("default backend kernel", "registered at y.cpp:3")
    assert mps_entry("CPU: x [kernel]\n") == ("no entry", "")


def test_disagreements_with_the_dispatcher_are_listed(small: Surface) -> None:
    kinds = {
        Dispatch.NATIVE: "kernel",
        Dispatch.STRUCTURED_DELEGATE: "kernel",
        Dispatch.ALWAYS_FALLS_BACK: "kernel",
        Dispatch.COMPOSITE_IMPLICIT: "math kernel",
        Dispatch.COMPOSITE_EXPLICIT: "default backend kernel",
    }
    # A structured delegate without a kernel has a generated one that calls its out overload.
    generated = {"aten::heaviside": "default backend kernel"}

    def dump_table(name: str) -> str:
        if name == "aten::relu":
            return "MPS: fallthrough registered at fallback.mm:1 [backend fallback]"
        if name == "aten::isnan":
            raise RuntimeError("no such operator")
        kind = generated.get(name) or kinds.get(small.by_name[name].dispatch, "backend fallback")
        return f"MPS: at x.cpp:1 [{kind}]"

    disagreements = {item.overload: item.observed for item in check_against_dispatcher(small, dump_table)}
    assert disagreements == {"aten::relu": "backend fallback", "aten::isnan": "unregistered"}
    assert "the surface says native" in str(check_against_dispatcher(small, dump_table)[0])


def test_patterns(small: Surface) -> None:
    every = [overload.name for overload in small.overloads]
    assert select_names(every, ["heaviside", "aten::sin.out"]) == [
        "aten::heaviside.out",
        "aten::heaviside",
        "aten::sin.out",
    ]
    with pytest.raises(MpsmithError, match=r"no operator matches heavyside \(did you mean heaviside\?\)"):
        select_names(every, ["heavyside"])


def test_malformed_derivatives_are_an_error() -> None:
    with pytest.raises(MpsmithError, match=r"derivatives\.yaml of torch 2\.13\.0: an entry has no `name:`"):
        surface_of(YAML, b"- func: x", "2.13.0")
