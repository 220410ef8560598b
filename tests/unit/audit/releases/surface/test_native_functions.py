import subprocess
import sys
from pathlib import Path

import pytest

from mpsmith.audit.releases.surface import native_functions
from mpsmith.audit.releases.surface.native_functions import NativeFunction, argument_names, functional_name, parse
from mpsmith.errors import MpsmithError

YAML = """
- func: relu(Tensor self) -> Tensor
  device_check: NoCheck
  variants: function, method
  dispatch:
    CPU, CUDA: relu
    MPS: relu_mps
  autogen: relu.out, relu.other_out
  tags: [core, pointwise]

- func: softshrink.out(Tensor self, Scalar lambd=0.5, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  python_module: nn
  dispatch:
    CPU: softshrink_out

- func: softshrink(Tensor self, Scalar lambd=0.5) -> Tensor
  structured_delegate: softshrink.out
  tags: pointwise
"""


def by_name(text: str) -> dict[str, NativeFunction]:
    return {function.name: function for function in parse(text, "test.yaml")}


def test_dispatch_keys_are_split_at_commas() -> None:
    assert by_name(YAML)["relu"].dispatch == {"CPU": "relu", "CUDA": "relu", "MPS": "relu_mps"}


def test_fields_of_an_entry() -> None:
    functions = by_name(YAML)
    relu = functions["relu"]
    assert relu.variants == ("function", "method")
    assert relu.autogen == ("relu.out", "relu.other_out")
    assert relu.tags == ("core", "pointwise")
    assert relu.schema == "relu(Tensor self) -> Tensor"
    assert functions["softshrink.out"].structured
    assert functions["softshrink.out"].python_module == "nn"
    assert functions["softshrink"].structured_delegate == "softshrink.out"
    assert functions["softshrink"].tags == ("pointwise",)
    assert functions["softshrink"].dispatch == {}


def test_argument_names_skip_types_defaults_and_the_star() -> None:
    schema = (
        'f(Tensor(a!) self, int[2] size=[1,2], str mode="mean, sum", *, Tensor[]? w=None, Tensor(b!) out) -> (Tensor r)'
    )
    assert argument_names(schema)[:2] == ("self", "size")
    assert argument_names(schema)[-2:] == ("w", "out")
    assert argument_names("f() -> ()") == ()


@pytest.mark.parametrize(
    ("name", "functional"),
    [("add_.Tensor", "add"), ("add.out", "add"), ("_foo_bar", "_foo_bar"), ("__iand__.Scalar", "__iand__")],
)
def test_functional_name(name: str, functional: str) -> None:
    assert functional_name(name) == functional


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- func: f(\n  - broken: [", r"test\.yaml, line \d+: not valid YAML"),
        ("just text", "expected a list of entries"),
        ("", "expected a list of entries"),
        ("- name: f(Tensor self) -> Tensor", r"test\.yaml: entry 1 has no `func:`"),
        ("- func: f\n", "f: malformed entry"),
        ("- func: f() -> ()\n  dispatch: CPU\n", "f: malformed entry"),
        (b"- func: \xff", "not valid YAML"),
    ],
)
def test_malformed_text_is_one_clear_error(text: str | bytes, message: str) -> None:
    with pytest.raises(MpsmithError, match=message) as caught:
        parse(text, "test.yaml")
    assert "\n" not in str(caught.value)


def test_installed_yaml_is_found_without_importing_torch() -> None:
    program = (
        "import sys; from mpsmith.audit.releases.surface import native_functions as n; "
        "print(n.installed_path(), n.installed_release()); assert 'torch' not in sys.modules"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert Path(shown.split()[0]).name == "native_functions.yaml"


def test_missing_torch_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_functions.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MpsmithError, match="torch is not installed here"):
        native_functions.installed_path()
