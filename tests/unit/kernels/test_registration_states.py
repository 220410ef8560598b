"""When a kernel is registered and when it is not, with a fake dispatcher and fake kernels."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

from mpsmith.kernels.runtime import dispatcher, registered_kernel, registration
from mpsmith.kernels.runtime.catalog import Kernel, UnknownKernelError
from mpsmith.kernels.runtime.registration import State

PLAIN = Kernel("aten::plain", "plain", lambda x: f"plain {x}")
OUT = Kernel("aten::plain.out", "plain", lambda x: f"out {x}")
OVERRIDE = Kernel("aten::over", "over", lambda x: f"over {x}", lambda x: x > 0)
COMPOSITE = Kernel("aten::whole", "plain", lambda x: f"whole {x}", composite=True)
UNFINISHED = Kernel("aten::draft", "draft", lambda x: x)
TAKES_OVERRIDE = registered_kernel._TAKES_OVERRIDE
KERNELS = (PLAIN, OUT, OVERRIDE, UNFINISHED)


class World:
    """A torch and a registry of kernels: what exists, what is native, and what is registered now."""

    def __init__(self) -> None:
        self.device = True
        self.exist = {kernel.overload for kernel in KERNELS}
        self.native = {"aten::over"}
        self.impls: list[tuple[str, str, dict[str, Any]]] = []
        self.functions: dict[str, Callable[..., Any]] = {}
        self.active = True
        self.entries_read = 0

    def named(self, names: Any) -> tuple[Kernel, ...]:
        full = [name if "::" in name else f"aten::{name}" for name in names]
        kernels = tuple(kernel for name in full for kernel in KERNELS if name in (kernel.operator, kernel.overload))
        if names and not kernels:
            raise UnknownKernelError("mpsmith has no kernel for that")
        return kernels

    def entries(self) -> tuple[()]:
        self.entries_read += 1
        return ()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()

    class Library:
        def __init__(self, namespace: str, kind: str) -> None:
            assert (namespace, kind) == ("aten", "IMPL")
            self.name = ""

        def impl(self, name: str, function: Callable[..., Any], key: str, **options: Any) -> None:
            self.name = name
            world.impls.append((name, key, options))
            world.functions[name] = function

        def _destroy(self) -> None:
            del world.functions[self.name]

    class Original:
        def call_boxed(self, keyset: object, *args: Any) -> str:
            return f"torch's {args} under {keyset}"

    monkeypatch.setattr(torch.library, "Library", Library)
    monkeypatch.setattr(torch.library, "get_kernel", lambda overload, key: Original(), raising=False)
    monkeypatch.setattr(registration, "_registered", {})
    monkeypatch.setattr(registration, "_scopes", [{}])
    monkeypatch.setattr(registered_kernel, "_TAKES_OVERRIDE", True)
    monkeypatch.setattr(dispatcher, "mps_is_available", lambda: world.device)
    monkeypatch.setattr(dispatcher, "exists", lambda overload: overload in world.exist)
    monkeypatch.setattr(dispatcher, "has_mps_kernel", lambda overload, key: overload in world.native)
    monkeypatch.setattr(dispatcher, "is_registered_in", lambda file, overload, key: world.active)
    monkeypatch.setattr(registration, "all_kernels", lambda: KERNELS)
    monkeypatch.setattr(registration, "finished", lambda: KERNELS[:3])
    monkeypatch.setattr(registration, "overrides", lambda: KERNELS[2:3])
    monkeypatch.setattr(registration, "finished_entries", world.entries)
    monkeypatch.setattr(registration, "named", world.named)
    return world


def states() -> dict[str, str]:
    return {status.overload.removeprefix("aten::"): status.state.value for status in registration.status()}


# ---- states


def test_overloads_that_torch_lacks_are_available_if_finished(world: World) -> None:
    assert states() == {"plain": "available", "plain.out": "available", "over": "available", "draft": "unfinished"}
    assert [status.family for status in registration.status()] == ["plain", "plain", "over", "draft"]


def test_overloads_of_torch_are_native_except_for_overrides(world: World) -> None:
    world.native = {"aten::plain", "aten::over", "aten::draft"}
    assert states() == {"plain": "native", "plain.out": "available", "over": "available", "draft": "native"}


def test_unknown_overloads_cannot_be_registered(world: World) -> None:
    world.exist = {"aten::plain"}
    assert set(states().values()) == {"available", "not in this torch"}
    assert registration.enable() == ("aten::plain",)


def test_override_needs_get_kernel(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.library, "get_kernel")
    assert states()["over"] == "cannot be overridden"
    assert registration.enable("over") == ()
    assert states()["plain"] == "available"


def test_registers_nothing_without_device(world: World) -> None:
    world.device = False
    assert set(states().values()) == {"no mps device"}
    assert registration.enable() == ()
    assert world.entries_read == 1, "a broken registry is reported anyway"
    assert registration.enable("plain") == ()
    assert world.entries_read == 1
    assert world.impls == []


def test_registered_kernels_stay_registered(world: World) -> None:
    registration.enable("plain")
    world.device, world.native = False, {"aten::plain"}
    assert states()["plain"] == "registered"


def test_explains_every_state() -> None:
    assert len({state.explanation for state in State}) == len(State)
    assert State.registered.explanation == "the kernel of mpsmith is registered"
    assert State.native.explanation == "torch has its own kernel"


# ---- enable, disable, use


def test_enable_registers_finished_kernels_for_mps(world: World) -> None:
    assert registration.enable() == ("aten::plain", "aten::plain.out", "aten::over")
    assert registration.registered() == ("aten::plain", "aten::plain.out", "aten::over")
    assert world.impls == [
        ("plain", "MPS", {"with_keyset": False, "allow_override": True}),
        ("plain.out", "MPS", {"with_keyset": False, "allow_override": True}),
        ("over", "MPS", {"with_keyset": True, "allow_override": True}),
    ]
    assert world.functions["plain"](3) == "plain 3"
    assert world.entries_read == 0


def test_enable_by_name_registers_unfinished_kernels(world: World) -> None:
    assert registration.enable("draft") == ("aten::draft",)
    assert registration.registered() == ("aten::draft",)
    with pytest.raises(UnknownKernelError):
        registration.enable("nosuch")


def test_enable_twice(world: World) -> None:
    registration.enable("plain")
    assert registration.enable("plain") == ("aten::plain", "aten::plain.out")
    assert len(world.impls) == 2


def test_older_torch_without_allow_override(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registered_kernel, "_TAKES_OVERRIDE", False)
    registration.enable("plain.out")
    assert world.impls == [("plain.out", "MPS", {"with_keyset": False})]


def test_detects_allow_override() -> None:
    assert TAKES_OVERRIDE is ("allow_override" in inspect.signature(torch.library.Library.impl).parameters)


def test_override_replaces_only_calls_that_it_applies_to(world: World) -> None:
    registration.enable("over")
    assert world.functions["over"]("keys", 2) == "over 2"
    assert world.functions["over"]("keys", -2) == "torch's (-2,) under keys"


def test_disable_by_name_or_all(world: World) -> None:
    registration.enable()
    assert registration.disable("over") == ("aten::over",)
    assert registration.disable("over", "draft") == ()
    assert set(world.functions) == {"plain", "plain.out"}
    assert registration.disable() == ("aten::plain", "aten::plain.out")
    assert world.functions == {}
    assert registration.registered() == ()


def test_use_registers_exactly_its_kernels(world: World) -> None:
    registration.enable("over")
    with registration.use("plain.out") as active:
        assert active == ("aten::plain.out",)
        assert set(world.functions) == {"plain.out"}
    assert registration.registered() == ("aten::over",)


def test_use_restores_after_an_error(world: World) -> None:
    registration.enable("over")

    def call() -> None:
        with registration.use():
            assert world.functions == {}
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        call()
    assert registration.registered() == ("aten::over",)


def test_use_restores_nothing_if_nothing_was_registered(world: World) -> None:
    with registration.use("plain"):
        pass
    assert registration.registered() == ()


def test_use_keeps_kernels_registered_before_and_inside(world: World) -> None:
    registration.enable("plain.out", "over")
    before = world.functions["plain.out"]
    with registration.use("plain"):
        assert world.functions["plain.out"] is before
    assert world.functions["plain.out"] is before
    assert [name for name, _, _ in world.impls].count("plain.out") == 1


def test_use_may_end_before_a_later_one(world: World) -> None:
    """Threads share the dispatcher: the first of two may leave while the second is inside."""
    registration.enable("over")
    first, second = registration.use("plain.out"), registration.use("draft")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert registration.registered() == ("aten::draft",)
    assert set(world.functions) == {"draft"}
    second.__exit__(None, None, None)
    assert registration.registered() == ("aten::over",)


def test_enable_inside_use_ends_with_it(world: World) -> None:
    with registration.use("over"):
        registration.enable("draft")
        registration.disable("over")
        assert registration.registered() == ("aten::draft",)
    assert registration.registered() == ()


def test_state_of_an_overload_that_another_library_registered_later(world: World) -> None:
    registration.enable("plain.out")
    world.active = False
    assert states()["plain.out"] == "replaced"
    assert registration.disable("plain.out") == ("aten::plain.out",)


def test_counting_counts_calls_of_kernels(world: World) -> None:
    with registration.counting("plain", "over") as calls:
        assert [world.functions["plain"](n) for n in (1, 2)] == ["plain 1", "plain 2"]
        world.functions["over"]("keys", 2)
        world.functions["over"]("keys", -2)
    assert calls == {"aten::plain": 2, "aten::over": 1}, "what torch answered is not counted"


def test_hides_only_the_override_warning(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    class Noisy:
        def __init__(self, *_: Any) -> None:
            """As torch's."""

        def impl(self, *_: Any, **__: Any) -> None:
            warnings.warn("Warning only once\n  Overriding a previously registered kernel", stacklevel=1)
            warnings.warn("something else", stacklevel=1)

        def _destroy(self) -> None:
            """Nothing to do."""

    monkeypatch.setattr(torch.library, "Library", Noisy)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        registration.enable("plain.out")
    assert [str(warning.message) for warning in caught] == ["something else"]


# ---- the environment


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ("aten::plain", "aten::plain.out", "aten::over")),
        ("", ("aten::plain", "aten::plain.out", "aten::over")),
        (" ON ", ("aten::plain", "aten::plain.out", "aten::over")),
        ("1", ("aten::plain", "aten::plain.out", "aten::over")),
        ("all", ("aten::plain", "aten::plain.out", "aten::over")),
        ("off", ()),
        ("0", ()),
        ("None", ()),
        ("over, plain.out,", ("aten::over", "aten::plain.out")),
    ],
)
def test_environment_variable(
    world: World, monkeypatch: pytest.MonkeyPatch, value: str | None, expected: tuple[str, ...]
) -> None:
    if value is None:
        monkeypatch.delenv("MPSMITH_KERNELS", raising=False)
    else:
        monkeypatch.setenv("MPSMITH_KERNELS", value)
    registration.enable_from_environment()
    assert registration.registered() == expected


@pytest.mark.parametrize(("value", "source"), [("nosuch", "MPSMITH_KERNELS=nosuch"), ("", "mpsmith.kernels")])
def test_import_warns_instead_of_failing(
    world: World, monkeypatch: pytest.MonkeyPatch, value: str, source: str
) -> None:
    def broken() -> Any:
        raise UnknownKernelError("mpsmith has no kernel for that")

    monkeypatch.setenv("MPSMITH_KERNELS", value)
    monkeypatch.setattr(registration, "finished", broken)
    with pytest.warns(UserWarning, match=f"^{source}: mpsmith has no kernel for that; no kernel was registered$"):
        registration.enable_from_environment()
    assert registration.registered() == ()


def test_warning_points_at_the_import(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def package() -> None:
        registration.enable_from_environment()

    monkeypatch.setenv("MPSMITH_KERNELS", "nosuch")
    with pytest.warns(UserWarning, match="nosuch") as caught:
        package()
    assert caught[0].filename == __file__
    assert caught[0].lineno != package.__code__.co_firstlineno + 1, "the package itself"


# ---- composites


@pytest.mark.parametrize(
    ("left_alone", "answered", "keys"), [(True, (), []), (False, ("aten::whole",), ["MPS", "AutogradMPS"])]
)
def test_composite_is_registered_only_for_a_cpu_fallback(
    world: World, monkeypatch: pytest.MonkeyPatch, left_alone: bool, answered: tuple[str, ...], keys: list[str]
) -> None:
    world.exist.add("aten::whole")
    monkeypatch.setattr(registration, "named", lambda names: (COMPOSITE,))
    monkeypatch.setattr(dispatcher, "is_composite", lambda overload: left_alone)
    assert registration.enable("whole") == answered
    assert [(name, key) for name, key, _ in world.impls] == [("whole", key) for key in keys]


# ---- the dispatcher


NATIVE_DUMP = "name: aten::linalg_svd\nCPU: registered at x [ kernel ]\nMPS: registered at aten/Mps.cpp:1 [ kernel ]\n"
BOXED_DUMP = "CPU: [ boxed ]\nMPS: registered at torch/csrc/x.cpp:1 [ boxed ]\nMeta: y [ kernel ]\n"
FALLBACK_DUMP = "MPS: fallback registered at aten/src/ATen/mps/MPSFallback.mm:75 [ kernel ]\n"


@pytest.mark.parametrize(
    ("overload", "has_key", "dump", "native"),
    [
        ("aten::relu", True, BOXED_DUMP, True),
        ("aten::relu", False, NATIVE_DUMP, False),
        ("aten::linalg_svd", True, NATIVE_DUMP, True),
        ("aten::linalg_svd", True, BOXED_DUMP, False),
        ("aten::linalg_svd.U", True, FALLBACK_DUMP, False),
        ("aten::embedding_renorm_", True, FALLBACK_DUMP, False),
        ("aten::_slow_conv2d_forward", True, FALLBACK_DUMP, False),
        ("aten::linalg_svd", True, "CPU: [ boxed ]\n", True),
        ("aten::linalg_svd", False, NATIVE_DUMP, False),
    ],
)
def test_cpu_fallback_is_not_a_native_kernel(
    overload: str, has_key: bool, dump: str, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(
        torch._C, "_dispatch_has_kernel_for_dispatch_key", lambda name, key: asked.append((name, key)) or has_key
    )
    monkeypatch.setattr(torch._C, "_dispatch_dump", lambda name: dump)
    assert dispatcher.has_mps_kernel(overload) is native
    assert dispatcher.is_composite(overload) is not has_key
    assert asked == [(overload, "MPS")] * 2


def test_active_kernel_is_that_of_the_last_library(monkeypatch: pytest.MonkeyPatch) -> None:
    dump = "CPU: registered at a.cpp:1 [ kernel ]\nMPS: registered at /x/kernels.py:90 [ boxed ]\n"
    dump += "MPS (inactive): registered at /y/older.py:9 [ boxed ]\nSparseMPS: registered at /y/older.py:9 [ boxed ]\n"
    monkeypatch.setattr(torch._C, "_dispatch_dump", lambda overload: dump)
    assert dispatcher.is_registered_in("/x/kernels.py", "aten::plain")
    assert not dispatcher.is_registered_in("/y/older.py", "aten::plain")
    assert dispatcher.is_registered_in("/y/older.py", "aten::plain", "SparseMPS")


@pytest.mark.parametrize(
    ("registered", "meta", "where", "lacks", "concrete"),
    [
        (False, False, "aten/RegisterMeta_0.cpp:1", False, False),
        (True, False, None, True, False),
        (True, True, "torch/_meta_registrations.py:54", False, False),
        (True, True, "aten/RegisterMeta_0.cpp:1", False, True),
    ],
)
def test_a_fake_is_needed_where_meta_has_none_or_wants_numbers(
    registered: bool, meta: bool, where: str | None, lacks: bool, concrete: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch._C, "_dispatch_has_kernel", lambda name: registered)
    monkeypatch.setattr(torch._C, "_dispatch_has_kernel_for_dispatch_key", lambda name, key: meta and key == "Meta")
    monkeypatch.setattr(
        torch._C, "_dispatch_dump", lambda name: f"Meta: registered at {where} [ boxed ]" if where else ""
    )
    assert dispatcher.lacks_fake("aten::plain") is lacks
    assert dispatcher.fake_needs_concrete_sizes("aten::plain") is concrete


def test_overload_exists() -> None:
    assert dispatcher.exists("aten::relu")
    assert not dispatcher.exists("aten::nosuch")
    assert dispatcher.mps_is_available() is torch.backends.mps.is_available()
