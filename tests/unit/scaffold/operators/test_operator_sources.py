"""Where the operators of a scaffold come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.audit.releases.surface import native_functions
from mpsmith.scaffold.errors import ScaffoldError, ToolchainError
from mpsmith.scaffold.operators.source import of_yaml, source_of
from mpsmith.scaffold.release_files import NATIVE_FUNCTIONS, files_of, torch_folder

YAML = """\
- func: mode(Tensor self, int dim=-1) -> (Tensor values, Tensor indices)
  dispatch:
    CPU, CUDA: mode

- func: mode_(Tensor(a!) self) -> Tensor(a!)
  dispatch:
    CPU: mode_
"""


@pytest.fixture
def times_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What was parsed, with an empty cache of surfaces."""
    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path))
    read: list[str] = []
    load = native_functions.load_entries

    def load_entries(text: bytes | str, source: str) -> list[object]:
        read.append(source)
        return load(text, source)

    monkeypatch.setattr(native_functions, "load_entries", load_entries)
    return read


def test_the_yaml_of_the_installed_torch_is_read_once(times_read: list[str]) -> None:
    source_of(None)
    assert times_read == [str(files_of(None).native_functions)]


def test_the_yaml_of_another_release_is_read_once(times_read: list[str]) -> None:
    kept = torch_folder("2.12.0") / NATIVE_FUNCTIONS
    kept.parent.mkdir(parents=True)
    kept.write_text(YAML)
    source = source_of("2.12.0")
    assert source.release == "2.12.0"
    assert times_read == ["native_functions.yaml of torch 2.12.0"]


def test_a_release_that_was_not_set_up_is_one_line(times_read: list[str]) -> None:
    with pytest.raises(ToolchainError, match=r"fetch it once with: mpsmith check --setup --torch 2\.12\.0"):
        source_of("2.12.0")


def test_inplace_and_functional_variants_are_relatives() -> None:
    source = of_yaml(YAML.encode(), "2.12.0")
    assert source.operator("mode").relatives == ("mode_",)
    assert source.operator("mode_").relatives == ("mode",)


def test_an_overload_whose_types_torch_has_given_up_costs_itself_alone() -> None:
    named = "- func: mode.dimname(Tensor self, Dimname dim) -> (Tensor values, Tensor indices)\n"
    source = of_yaml(f"{YAML}\n{named}".encode(), "2.6.0")
    assert [overload.name for overload in source.operator("mode").overloads] == ["mode"]


def test_an_operator_of_such_overloads_alone_is_one_line() -> None:
    source = of_yaml(b"- func: named(Tensor self, Dimname dim) -> Tensor\n", "2.6.0")
    with pytest.raises(ScaffoldError, match=r"cannot read the schemas of aten::named in torch 2\.6\.0"):
        source.operator("named")
