"""What differs between the releases of torch that kernels are registered in: every way is taken here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from mpsmith.kernels.runtime import catalog, dispatcher, registered_kernel, registration, shader
from mpsmith.kernels.runtime.registration import State


class Library:
    """torch.library.Library as a release has it: `options` are those that its `impl` knows."""

    made: list[tuple[str, str, dict[str, Any]]]
    options: frozenset[str]

    def __init__(self, namespace: str, kind: str) -> None:
        assert (namespace, kind) == ("aten", "IMPL")

    def impl(self, name: str, function: Any, key: str, **options: Any) -> None:
        assert set(options) <= self.options, "this release does not know the option"
        self.made.append((name, key, options))

    def _destroy(self) -> None:
        pass


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Library]]:
    """A torch with an mps device that lacks every kernel; what is registered is only written down."""
    Library.made = []
    Library.options = frozenset({"with_keyset", "allow_override"})
    monkeypatch.setattr(torch.library, "Library", Library)
    monkeypatch.setattr(registration, "_registered", {})
    monkeypatch.setattr(registration, "_scopes", [{}])
    monkeypatch.setattr(dispatcher, "mps_is_available", lambda: True)
    monkeypatch.setattr(dispatcher, "has_mps_kernel", lambda overload: False)
    yield Library
    registration.disable()


@pytest.mark.parametrize("takes_override", [True, False])
def test_allow_override_is_passed_where_the_release_knows_it(
    library: type[Library], monkeypatch: pytest.MonkeyPatch, takes_override: bool
) -> None:
    monkeypatch.setattr(registered_kernel, "_TAKES_OVERRIDE", takes_override)
    if not takes_override:
        library.options = frozenset({"with_keyset"})
    assert registration.enable("mode") == ("aten::mode", "aten::mode.values")
    expected = {"with_keyset": False} | ({"allow_override": True} if takes_override else {})
    assert library.made == [("mode", "MPS", expected), ("mode.values", "MPS", expected)]


def test_an_operator_is_overridden_only_where_its_own_kernel_can_be_called(
    library: type[Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch.library.get_kernel came with torch 2.9."""
    monkeypatch.delattr(torch.library, "get_kernel")
    monkeypatch.setattr(dispatcher, "has_mps_kernel", lambda overload: True)
    assert registration.enable("_adaptive_avg_pool2d") == ()
    states = {one.overload: one.state for one in registration.status()}
    assert states["aten::_adaptive_avg_pool2d"] is State.no_original
    assert states["aten::mode"] is State.native
    assert library.made == []


def test_overloads_that_the_release_does_not_have_are_left_alone(
    library: type[Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "exists", lambda overload: overload != "aten::mode.values")
    assert registration.enable("mode") == ("aten::mode",)
    assert {one.state for one in registration.status() if one.overload == "aten::mode.values"} == {State.not_in_torch}


def test_a_release_that_cannot_compile_metal_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.mps, "compile_shader", raising=False)
    (kernel, *_) = catalog.family("mode")
    own = shader.Shader(kernel.function.__globals__["__file__"])
    with pytest.raises(RuntimeError, match=r"torch \S+ cannot compile Metal; mpsmith's kernels need 2.7 or newer"):
        own.kernel("mode_float", torch.device("cpu"))


@pytest.mark.parametrize("reports", [True, False])
def test_errors_are_reported_where_the_release_has_a_buffer_for_them(
    monkeypatch: pytest.MonkeyPatch, reports: bool
) -> None:
    """compile_shader takes error_buf_idx since torch 2.11; c10/metal/error.h must not be needed before."""
    monkeypatch.setattr(shader, "REPORTS_ERRORS", reports)
    assert shader.reporting(5) == ({"error_buf_idx": 5} if reports else {})
    (kernel, *_) = catalog.family("put_take")
    source = shader.Shader(kernel.function.__globals__["__file__"]).source()
    assert source.startswith("#define REPORTS\n") == reports
    assert "#ifdef REPORTS\n#include <c10/metal/error.h>" in source
