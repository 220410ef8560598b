"""Shaders in releases of torch with and without compile_shader and error buffers."""

from __future__ import annotations

import pytest
import torch

from mpsmith.kernels.runtime import catalog, shader


def test_release_without_compile_shader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.mps, "compile_shader", raising=False)
    (kernel, *_) = catalog.family("mode")
    own = shader.Shader(kernel.function.__globals__["__file__"])
    with pytest.raises(RuntimeError, match=r"torch \S+ cannot compile Metal; mpsmith's kernels need 2.7 or newer"):
        own.kernel("mode_float", torch.device("cpu"))


@pytest.mark.parametrize("reports", [True, False])
def test_error_buffer_depends_on_the_release(monkeypatch: pytest.MonkeyPatch, reports: bool) -> None:
    """compile_shader takes error_buf_idx since torch 2.11; c10/metal/error.h must not be needed before."""
    monkeypatch.setattr(shader, "REPORTS_ERRORS", reports)
    assert shader.reporting(5) == ({"error_buf_idx": 5} if reports else {})
    (kernel, *_) = catalog.family("put_take")
    source = shader.Shader(kernel.function.__globals__["__file__"]).source()
    assert source.startswith("#define REPORTS\n") == reports
    assert "#ifdef REPORTS\n#include <c10/metal/error.h>" in source
