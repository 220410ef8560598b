import subprocess
import sys
from pathlib import Path

import pytest

from mpsmith.registry.files import edit, load
from mpsmith.registry.kernel_index import KernelEntry, kernel_entries, scan
from mpsmith.registry.problems import RegistryError

TEXT = """\
# kernel: in a comment
aten::max:
  measured:
    mps: {torch: 2.13.0, verdict: native}

aten::mode:  # wanted
  status: not applicable  # for now
  reason: none
  kernel: mode  # see there
  notes: |
    kernel: not this one
      status: nor this

aten::mul:
  status: native

aten::multi_margin_loss:
  kernel: margin_loss"""


def test_entries_with_a_kernel_are_found() -> None:
    assert scan(TEXT) == [
        KernelEntry("aten::mode", "mode", "not applicable"),
        KernelEntry("aten::multi_margin_loss", "margin_loss", None),
    ]


def test_line_ends_of_windows_are_read() -> None:
    assert scan(TEXT.replace("\n", "\r\n")) == scan(TEXT)


def test_the_scan_agrees_with_the_parser(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(TEXT)
    edit(tmp_path, "mul", {"kernel": "mul", "status": "implemented"})
    edit(tmp_path, "torchvision::nms", {"kernel": "nms"}, add=True)
    registry = load(tmp_path)
    meant = {
        name: KernelEntry(name, entry.kernel, entry.status.value if entry.status else None)
        for name, entry in registry.items()
        if entry.kernel
    }
    assert kernel_entries(tmp_path) == meant
    assert len(meant) == 4


@pytest.mark.parametrize(
    "text",
    [
        'aten::a:\n  owner: x\n"aten::b":\n  kernel: b\n',  # the scan would give b's kernel to a
        "aten::a:\n  kernel: a\n  status:\n    implemented\n",
        "aten::a: {kernel: a}\n",
        "aten::a:\n  kernel: >-\n    a\n",
    ],
)
def test_refuses_entries_that_the_scan_misreads(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(RegistryError, match="an entry with a kernel is written plainly"):
        load(tmp_path)


def test_an_empty_registry_has_no_kernels(tmp_path: Path) -> None:
    assert kernel_entries(tmp_path) == {}
    assert kernel_entries(tmp_path / "none") == {}


def test_unreadable_files_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").mkdir()
    with pytest.raises(RegistryError, match="cannot read the registry"):
        kernel_entries(tmp_path)


def test_rejects_files_that_are_not_text(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"aten::a:\n  kernel: \xff\n")
    with pytest.raises(RegistryError, match="cannot read the registry"):
        kernel_entries(tmp_path)


def test_the_index_needs_no_parser_and_no_model() -> None:
    code = (
        "import sys; from mpsmith.registry.kernel_index import kernel_entries; kernel_entries();"
        "print([name for name in ('pydantic', 'yaml', 'torch', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
