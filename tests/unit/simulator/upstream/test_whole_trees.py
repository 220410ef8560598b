"""What a build of a whole tree changes in texts, leaves out, and fetches."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
import torchgen

from mpsmith.simulator.errors import UpstreamError
from mpsmith.simulator.upstream import sources
from mpsmith.simulator.upstream.operations import OPERATIONS
from mpsmith.simulator.upstream.registrations import MpsYaml
from mpsmith.simulator.upstream.schema_check import changed_schemas
from mpsmith.simulator.upstream.sources import source_of_release
from mpsmith.simulator.upstream.text_changes import CHANGES, changed_text
from mpsmith.simulator.upstream.whole_tree import build_tree

TAGS = Path(torchgen.__file__).parent / "packaged/ATen/native/tags.yaml"
ROW = """\
- func: {schema}
  dispatch:
    MPS: {kernel}

"""


def test_a_text_keeps_its_lines_when_it_is_changed() -> None:
    text = "".join(f"{change.old}\n" for change in CHANGES) + "long long x = unsigned long long(1);\n"
    text += 'fmt::format(TEMPLATE, type);\nfmt::format("{}", type);\n'
    changed = changed_text(text)
    assert changed.count("\n") == text.count("\n")
    number, *formats = changed.splitlines()[-3:]
    assert number == "long x = unsigned long(1);"
    assert formats == ["fmt::format(fmt::runtime(TEMPLATE), type);", 'fmt::format("{}", type);']
    assert all(change.reason and change.new in changed for change in CHANGES)


def test_overloads_whose_schema_changed_are_found_with_the_installed_one() -> None:
    rows = {
        "nextafter(Tensor self, Tensor other) -> Tensor": "nextafter_mps",
        "bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor": "bincount_mps",
        "renorm(Tensor self, Scalar p, int dim) -> Tensor": "renorm_mps",
        "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, int padding_idx,"
        " bool scale_grad_by_freq) -> Tensor": "embedding_mps",
        "gone_from_torch(Tensor self) -> Tensor": "gone_mps",
    }
    text = "".join(ROW.format(schema=schema, kernel=kernel) for schema, kernel in rows.items())
    changed = changed_schemas(MpsYaml(text, TAGS))
    assert sorted(changed) == ["embedding_dense_backward", "gone_from_torch", "renorm"]
    assert "Scalar maxnorm" in changed["renorm"]
    assert changed["gone_from_torch"] == ""


def test_rows_of_older_releases_are_read_without_removed_keys() -> None:
    rows = {
        "can_cast(ScalarType from, ScalarType to) -> bool": "can_cast",
        "nextafter(Tensor self, Tensor other) -> Tensor": "nextafter_mps",
        "bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)": "bernoulli_mps_",
    }
    text = "".join(ROW.format(schema=schema, kernel=kernel) for schema, kernel in rows.items())
    assert [kernel.overload for kernel in MpsYaml(text, TAGS).kernels] == ["nextafter", "bernoulli_.float"]
    tagged = text.replace("dispatch:", "tags: [pointwise]  # not the one of random results\n  dispatch:")
    assert len(MpsYaml(tagged, TAGS).kernels) == 2


def test_a_folder_that_is_not_a_checkout_is_named(tmp_path: Path) -> None:
    (tmp_path / OPERATIONS).mkdir(parents=True)
    with pytest.raises(UpstreamError, match=r"native_functions\.yaml.*give a whole checkout"):
        build_tree(tmp_path, "tree", "", print)


@pytest.mark.parametrize("release", ["", "2.6", "v2.6.0", "../2.6.0", "main"])
def test_a_name_that_is_not_a_release_is_refused(release: str) -> None:
    with pytest.raises(UpstreamError, match=r"is not a release of PyTorch: give one such as 2\.6\.0"):
        source_of_release(release)


def test_a_release_that_cannot_be_fetched_says_why_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path))
    monkeypatch.setattr(sources, "_REPOSITORY", str(tmp_path / "nowhere"))
    with pytest.raises(UpstreamError, match=r"cannot fetch the source of PyTorch 2\.7\.1: .*nowhere"):
        source_of_release("2.7.1")
    assert list((tmp_path / "upstream" / "sources").iterdir()) == []


def test_a_source_package_is_unpacked_once_without_unused_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = "aten/src/ATen/native/mps/operations/Eye.mm", "aten/src/ATen/native/Blas.cpp"
    package = tmp_path / "package.tar.xz"
    with tarfile.open(package, "w:xz") as archive:
        for name in (*wanted, "aten/src/ATen/native/cuda/Blas.cpp", "setup.py"):
            place = tmp_path / "tree" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(name)
            archive.add(place, f"pytorch-v9.9.9/{name}")
    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sources, "_REPOSITORY", str(tmp_path / "nowhere"))
    monkeypatch.setattr(sources, "_DEBIAN", package.as_uri())
    monkeypatch.setattr(sources, "_IN_DEBIAN", ("9.9.9",))
    folder = source_of_release("9.9.9")
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()) == sorted(wanted)
    package.unlink()
    assert source_of_release("9.9.9") == folder
