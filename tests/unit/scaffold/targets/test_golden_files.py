"""Generated code, compared letter by letter with reviewed files: two kinds for each target.

The files are in `golden/TARGET/KIND/`, made from the entries of torch 2.13 in `golden/native_functions.yaml`. When
generated code is meant to change, write them again and review the diff as code:

    python -m pytest tests/unit/scaffold/targets/test_golden_files.py --update-golden
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpsmith.audit.releases.surface import native_functions
from mpsmith.scaffold.operators import source as operators
from mpsmith.scaffold.operators.isolated_observation import observations_of
from mpsmith.scaffold.operators.kinds import KernelKind, kind_of
from mpsmith.scaffold.operators.source import Source
from mpsmith.scaffold.release_files import files_of
from mpsmith.scaffold.targets import KernelTarget, Request, extension, shader
from mpsmith.scaffold.targets.upstream import patch as upstream
from mpsmith.scaffold.targets.upstream.git_patch import added
from mpsmith.scaffold.targets.upstream.source_form import without_marks

GOLDEN = Path(__file__).with_name("golden")
OPERATORS = {
    KernelKind.UNARY: "softshrink",
    KernelKind.BINARY: "heaviside",
    KernelKind.TERNARY: "addcmul",
    KernelKind.REDUCTION: "_pdist_forward",
    KernelKind.SCAN: "_logcumsumexp",
    KernelKind.GATHER: "take",
    KernelKind.POOLING: "adaptive_max_pool3d",
    KernelKind.SORT: "mode",
    KernelKind.RANDOM: "poisson",
    KernelKind.LINALG: "linalg_eig",
    KernelKind.FOREACH: "_fused_adagrad_",
}
# Of these every generated file is compared; of the others only the kernel.
WHOLE = {(KernelTarget.SHADER, KernelKind.SORT), (KernelTarget.UPSTREAM, KernelKind.SORT)}
# Generated code of the other kinds is compiled (test_scaffold_all_targets.py), and run (test_scaffold_targets_run.py).
COMPARED = [(target, kind) for target in KernelTarget for kind in (KernelKind.UNARY, KernelKind.SORT)]
COMMON_MPS = """\
UNIMPLEMENTED_XFAILLIST = {
    "mode": None,
    "heaviside": None,
}
"""


OPINFOS = """\
op_db: list[OpInfo] = [
    OpInfo("mode"),
]
"""


@pytest.fixture(scope="module")
def source() -> Source:
    return operators.of_yaml((GOLDEN / "native_functions.yaml").read_bytes(), "2.13.0")


def generated(source: Source, target: KernelTarget, kind: KernelKind) -> dict[str, str]:
    """The generated files that are compared, by their names without folders."""
    operator = source.serving(source.operator(OPERATORS[kind]))
    request = Request(operator, kind, (operator.stem,), observations_of(operator))
    if target is KernelTarget.SHADER:
        files = shader.generate(request).files
    elif target is KernelTarget.EXTENSION:
        files = extension.generate(request).files
    else:
        yaml = (GOLDEN / "native_functions.yaml").read_text()
        tags = native_functions.installed_path().with_name("tags.yaml")
        files = upstream.generate(request, upstream.Tree(yaml, tags, COMMON_MPS, OPINFOS, files_of(None).include)).files
    whole = (target, kind) in WHOLE
    if whole and target is KernelTarget.UPSTREAM:
        files = without_patched(files)
    return {Path(path).name: text for path, text in files.items() if whole or is_kernel(path, target)}


def without_patched(files: Mapping[str, str]) -> dict[str, str]:
    """The files less those of the tree, which the patch adds without marks."""
    (patch,) = (text for path, text in files.items() if path.endswith(".patch"))
    in_tree = {path: text for path, text in files.items() if path.startswith("tree/")}
    assert all(added(path.removeprefix("tree/"), without_marks(text)) in patch for path, text in in_tree.items())
    return {path: text for path, text in files.items() if path not in in_tree}


def is_kernel(path: str, target: KernelTarget) -> bool:
    """Whether a file holds the kernel: host code, and for `shader` the Metal source."""
    if target is not KernelTarget.SHADER:
        return path.endswith(".mm")
    return path.startswith("kernels/") and not path.endswith("__init__.py")


def difference(expected: Mapping[str, str], actual: Mapping[str, str]) -> str:
    lines: list[str] = []
    for name in sorted({*expected, *actual}):
        before, after = (texts.get(name, "").splitlines() for texts in (expected, actual))
        lines += difflib.unified_diff(before, after, f"golden/{name}", f"generated/{name}", lineterm="")
    return "\n".join(lines)


@pytest.mark.parametrize(("target", "kind"), COMPARED)
def test_generated_code_equals_the_reviewed_files(
    source: Source, target: KernelTarget, kind: KernelKind, request: pytest.FixtureRequest
) -> None:
    folder = GOLDEN / target.value / kind.value
    texts = generated(source, target, kind)
    if request.config.getoption("--update-golden", default=False):
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            path.unlink()
        for name, text in texts.items():
            (folder / f"{name}.golden").write_text(text, "utf-8")
    reviewed = {path.name.removesuffix(".golden"): path.read_text("utf-8") for path in sorted(folder.glob("*.golden"))}
    assert difference(reviewed, texts) == ""


def test_an_extension_is_compiled_as_its_build_files_say(source: Source) -> None:
    """With automatic reference counting, under the name of its package, for the release whose operator it is."""
    operator = source.serving(source.operator("mode"))
    made = extension.generate(Request(operator, KernelKind.SORT, (operator.stem,)))
    assert made.arc
    assert made.definitions == ("TORCH_EXTENSION_NAME=mode_mps_C",)
    assert "-fobjc-arc" in made.files["setup.py"]
    assert 'dependencies = ["torch==2.13.0"]' in made.files["pyproject.toml"]


@pytest.mark.parametrize("kind", list(KernelKind))
def test_each_operator_has_its_kind(source: Source, kind: KernelKind) -> None:
    assert kind_of(source.operator(OPERATORS[kind])).kind is kind


def test_every_golden_file_is_compared() -> None:
    kept = {path.relative_to(GOLDEN).parts[:2] for path in GOLDEN.rglob("*.golden")}
    assert kept == {(target.value, kind.value) for target, kind in COMPARED}
