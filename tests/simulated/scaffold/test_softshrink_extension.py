"""The talks' story in docs/softshrink.md, in Objective-C++: the files of the page print what the page says.

The simulated device has the coverage of torch 2.0.1, in a separate process.

    python -m pytest tests/simulated/scaffold/test_softshrink_extension.py -m network
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.network  # Metal's declarations are fetched: mpsmith check --setup

DOCUMENT = Path(__file__).parents[3] / "docs" / "softshrink.md"
HOST, SHADER_LINE = "CustomSoftshrink.mm", "const float x = input[index];"


def blocks(language: str) -> list[str]:
    """The code blocks of the document in a language, in order."""
    return re.findall(rf"```{re.escape(language)}\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (host,) = blocks("objective-c++")
    _, custom, profile_model = blocks("python")
    (tmp_path / HOST).write_text(host)
    (tmp_path / "custom.py").write_text(custom)
    (tmp_path / "profile_model.py").write_text(profile_model)
    return tmp_path


def profiled(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"MPSMITH_SIMULATE": "2.0.1", "PYTORCH_ENABLE_MPS_FALLBACK": "1"}
    return subprocess.run(
        [sys.executable, "profile_model.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


def changed(folder: Path, old: str, new: str) -> Path:
    source = folder / HOST
    assert old in source.read_text()
    source.write_text(source.read_text().replace(old, new))
    return folder


def test_the_fallback_and_its_copies_are_gone(folder: Path) -> None:
    done = profiled(folder)
    assert done.returncode == 0, done.stderr
    (printed,) = blocks("text")
    assert [line for line in done.stdout.splitlines() if line.endswith("}")] == printed.splitlines()


def test_an_encoder_that_is_not_ended_is_found(folder: Path) -> None:
    done = profiled(changed(folder, "      [encoder endEncoding];\n", ""))
    assert done.returncode != 0
    assert "encoder" in done.stderr.splitlines()[-1], done.stderr


def test_buffers_in_the_wrong_order_are_found(folder: Path) -> None:
    done = profiled(changed(folder, "{dense, output}", "{output, dense}"))
    assert done.returncode != 0
    assert "Tensor-likes are not close" in done.stderr or "Metal" in done.stderr


@pytest.mark.parametrize("threads", ["tensors[0].numel() / 2", "tensors[0].numel() + 1"])
def test_a_wrong_number_of_threads_is_found(folder: Path, threads: str) -> None:
    done = profiled(changed(folder, "threads = tensors[0].numel()", f"threads = {threads}"))
    assert done.returncode != 0


def test_an_error_of_the_metal_source_comes_as_on_a_mac(folder: Path) -> None:
    done = profiled(changed(folder, SHADER_LINE, SHADER_LINE.replace("float", "not_a_type")))
    assert "RuntimeError: the Metal source does not compile: " in done.stderr
    assert "not_a_type" in done.stderr


def test_an_error_of_the_host_code_has_its_line(folder: Path) -> None:
    source = folder / HOST
    line = source.read_text().partition("[encoder endEncoding]")[0].count("\n") + 1
    done = profiled(changed(folder, "[encoder endEncoding]", "[encoder endEncodingNow]"))
    assert f"{HOST}:{line}:" in done.stderr
    assert "endEncodingNow" in done.stderr
