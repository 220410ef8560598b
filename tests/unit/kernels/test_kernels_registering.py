"""Who is registered, for how long, and what is left alone; the dispatcher is a list here."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from mpsmith.kernels.runtime import catalog, dispatcher, registered_kernel, registration
from mpsmith.kernels.runtime.catalog import UnknownKernelError
from mpsmith.kernels.runtime.registration import State
from mpsmith.registry.problems import RegistryError

MODE = ("aten::mode", "aten::mode.values")
IS_REGISTERED_IN = dispatcher.is_registered_in


class FakeDispatcher:
    """torch's dispatcher for mps: its own kernels by overload, and what libraries put over them while they live."""

    def __init__(self) -> None:
        self.native: dict[str, Callable[..., Any]] = {}
        self.missing: set[str] = set()
        self.alive: list[tuple[str, Any, bool]] = []
        self.device = True

    def library(self, namespace: str, kind: str) -> FakeLibrary:
        assert (namespace, kind) == ("aten", "IMPL")
        return FakeLibrary(self)

    def has_mps_kernel(self, overload: str) -> bool:
        return overload in self.native or overload in self.registered()

    def registered(self) -> list[str]:
        return [overload for overload, _, _ in self.alive]

    def call(self, overload: str, *args: Any, **kwargs: Any) -> Any:
        for name, function, with_keyset in reversed(self.alive):
            if name == overload:
                return function("the keyset", *args, **kwargs) if with_keyset else function(*args, **kwargs)
        return self.native[overload]("the keyset", *args, **kwargs)


class FakeLibrary:
    """torch.library.Library: what it registered goes when it is destroyed."""

    def __init__(self, torch_dispatcher: FakeDispatcher) -> None:
        self._dispatcher = torch_dispatcher

    def impl(self, name: str, function: Any, key: str, *, with_keyset: bool, allow_override: bool = False) -> None:
        assert key == "MPS"
        self._row = (f"aten::{name}", function, with_keyset)
        self._dispatcher.alive.append(self._row)

    def _destroy(self) -> None:
        self._dispatcher.alive.remove(self._row)


class Original:
    """What torch.library.get_kernel returns."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.call_boxed = function


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDispatcher]:
    made = FakeDispatcher()
    monkeypatch.setattr(torch.library, "Library", made.library)
    monkeypatch.setattr(
        torch.library, "get_kernel", lambda overload, key: Original(made.native[overload]), raising=False
    )
    monkeypatch.setattr(registration, "_registered", {})
    monkeypatch.setattr(registration, "_scopes", [{}])
    monkeypatch.setattr(dispatcher, "mps_is_available", lambda: made.device)
    monkeypatch.setattr(dispatcher, "exists", lambda overload: overload not in made.missing)
    monkeypatch.setattr(dispatcher, "has_mps_kernel", made.has_mps_kernel)
    monkeypatch.setattr(dispatcher, "is_registered_in", lambda file, overload: True)
    yield made
    registration.disable()
    assert made.alive == []


def states() -> dict[str, State]:
    return {status.overload: status.state for status in registration.status()}


def test_only_what_torch_lacks_is_registered(fake: FakeDispatcher) -> None:
    fake.native["aten::mode"] = lambda keyset, *args: "torch's"
    fake.missing.add("aten::take")
    assert registration.enable("mode", "take") == ("aten::mode.values", "aten::take.out")
    assert fake.registered() == ["aten::mode.values", "aten::take.out"]
    assert states()["aten::mode"] is State.native
    assert states()["aten::take"] is State.not_in_torch
    assert states()["aten::mode.values"] is State.registered


def test_each_overload_is_registered_once(fake: FakeDispatcher) -> None:
    assert registration.enable("mode") == registration.enable("mode", "aten::mode.values") == MODE
    assert fake.registered() == list(MODE)
    assert registration.registered() == MODE


def test_the_function_of_the_table_answers(fake: FakeDispatcher) -> None:
    registration.enable("heaviside")
    ((overload, function, with_keyset),) = fake.alive
    (kernel,) = catalog.family("heaviside")
    assert (overload, function, with_keyset) == (kernel.overload, kernel.function, False)


def test_disabling_takes_away_what_is_named_or_all(fake: FakeDispatcher) -> None:
    registration.enable("mode", "heaviside")
    assert registration.disable("aten::mode.values", "take") == ("aten::mode.values",)
    assert fake.registered() == ["aten::mode", "aten::heaviside.out"]
    assert registration.disable("mode") == ("aten::mode",)
    assert registration.disable("mode") == ()
    assert registration.disable() == ("aten::heaviside.out",)
    assert registration.registered() == ()
    with pytest.raises(UnknownKernelError, match="heavyside"):
        registration.disable("heavyside")


def test_where_there_is_no_device_nothing_is_registered(fake: FakeDispatcher, tmp_path: Path) -> None:
    fake.device = False
    assert registration.enable("mode") == registration.enable() == ()
    assert fake.alive == []
    assert set(states().values()) == {State.no_device}
    with pytest.raises(UnknownKernelError):
        registration.enable("heavyside")


@pytest.mark.parametrize("device", [True, False])
def test_a_registry_that_makes_no_sense_is_told_on_every_machine(
    fake: FakeDispatcher, registry: Path, device: bool
) -> None:
    fake.device = device
    (registry / "m.yaml").write_text("aten::mode:\n  status: implemented\n  kernel: nowhere\n")
    with pytest.raises(UnknownKernelError, match="there is no family nowhere"):
        registration.enable()
    (registry / "m.yaml").write_bytes(b"\xff")
    with pytest.raises(RegistryError, match="cannot read the registry"):
        registration.enable()


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MPSMITH_REGISTRY", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("status", "registers"),
    [("implemented", True), ("verified", True), ("upstreamed", True), ("scaffolded", False), ("missing", False)],
)
def test_the_registrys_status_decides_what_is_registered_without_names(
    fake: FakeDispatcher, registry: Path, status: str, registers: bool
) -> None:
    (registry / "m.yaml").write_text(f"aten::mode:\n  status: {status}\n  kernel: mode\n")
    assert states()["aten::mode"] is (State.available if registers else State.unfinished)
    assert states()["aten::heaviside.out"] is State.unfinished
    assert registration.enable() == (MODE if registers else ())
    assert registration.enable("mode") == MODE  # a name is enough, finished or not


def test_a_familys_other_operators_are_not_finished_with_one(fake: FakeDispatcher, registry: Path) -> None:
    (registry / "t.yaml").write_text("aten::take:\n  status: implemented\n  kernel: put_take\n")
    assert registration.enable() == ("aten::take", "aten::take.out")


def pool(fake: FakeDispatcher) -> None:
    fake.native["aten::_adaptive_avg_pool2d"] = lambda keyset, *args: ("torch's", keyset, *args)


def test_an_override_goes_over_torchs_kernel_and_leaves_it_what_it_does_not_apply_to(
    fake: FakeDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool(fake)
    image = torch.ones(1, 1, 6, 6)
    (kernel,) = catalog.named(["aten::_adaptive_avg_pool2d"])
    assert kernel.applies is not None
    monkeypatch.setattr(kernel.function, "__code__", (lambda self, output_size: ("ours", output_size)).__code__)
    assert registration.enable("_adaptive_avg_pool2d") == ("aten::_adaptive_avg_pool2d",)
    assert fake.call(kernel.overload, image, [4, 4]) == ("ours", [4, 4])
    assert fake.call(kernel.overload, image, [3, 3]) == ("torch's", "the keyset", image, [3, 3])
    registration.disable()
    assert fake.call(kernel.overload, image, [4, 4])[0] == "torch's"


def test_inside_use_exactly_those_are_registered(fake: FakeDispatcher) -> None:
    registration.enable("mode")
    with registration.use("heaviside", "aten::take.out") as active:
        assert active == registration.registered() == ("aten::heaviside.out", "aten::take.out")
        assert fake.registered() == list(active)
        with registration.use() as nothing:
            assert nothing == registration.registered() == ()
    assert registration.registered() == MODE
    with contextlib.suppress(KeyError), registration.use("take"):
        raise KeyError
    assert registration.registered() == MODE


def test_use_restores_exactly_the_overloads_of_before(fake: FakeDispatcher) -> None:
    """An operator's name stands for all its overloads, that of its default overload alone too."""
    registration.enable("mode", "heaviside")
    registration.disable("aten::mode.values")
    with registration.use():
        pass
    assert registration.registered() == ("aten::mode", "aten::heaviside.out")


def test_use_restores_nothing_where_nothing_was(fake: FakeDispatcher, registry: Path) -> None:
    (registry / "m.yaml").write_text("aten::mode:\n  status: implemented\n  kernel: mode\n")
    with registration.use("heaviside"):
        pass
    assert registration.registered() == ()


def test_a_name_without_a_kernel_changes_nothing(fake: FakeDispatcher) -> None:
    registration.enable("mode")
    with pytest.raises(UnknownKernelError), registration.use("heavyside"):
        pass
    with pytest.raises(UnknownKernelError), registration.counting("heavyside"):
        pass
    assert registration.registered() == MODE


def test_answers_are_counted_by_overload(fake: FakeDispatcher, monkeypatch: pytest.MonkeyPatch) -> None:
    pool(fake)
    fake.native["aten::heaviside.out"] = lambda keyset, *args: "torch's"
    with registration.counting("mode", "heaviside", "_adaptive_avg_pool2d") as calls:
        assert registration.registered() == (*MODE, "aten::_adaptive_avg_pool2d")
        with contextlib.suppress(RuntimeError):  # no shader compiles here: the call counts all the same
            fake.call("aten::mode", torch.ones(2, 2), 0)
        fake.call("aten::_adaptive_avg_pool2d", torch.ones(1, 1, 6, 6), [3, 3])
        fake.call("aten::heaviside.out", torch.ones(2), torch.ones(2))
        assert calls == {"aten::mode": 1}
    assert registration.registered() == ()


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("", MODE),
        ("on", MODE),
        ("1", MODE),
        (" ALL ", MODE),
        ("off", ()),
        ("0", ()),
        ("None", ()),
        (" aten::take , heaviside,", ("aten::take", "aten::take.out", "aten::heaviside.out")),
    ],
)
def test_what_the_variable_says(
    fake: FakeDispatcher, registry: Path, monkeypatch: pytest.MonkeyPatch, wanted: str, expected: tuple[str, ...]
) -> None:
    (registry / "m.yaml").write_text("aten::mode:\n  status: implemented\n  kernel: mode\n")
    monkeypatch.setenv(registration.VARIABLE, wanted)
    registration.enable_from_environment()
    assert registration.registered() == expected


def test_a_variable_or_registry_that_makes_no_sense_is_a_warning(
    fake: FakeDispatcher, registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(registration.VARIABLE, "mode,heavyside")
    with pytest.warns(UserWarning, match="^MPSMITH_KERNELS=mode,heavyside: mpsmith has no kernel .* no kernel was reg"):
        registration.enable_from_environment()
    assert fake.alive == []
    (registry / "m.yaml").write_text("aten::mode:\n  status: implemented\n  kernel: nowhere\n")
    monkeypatch.delenv(registration.VARIABLE)
    with pytest.warns(UserWarning, match=r"^mpsmith\.kernels: there is no family nowhere"):
        registration.enable_from_environment()


def test_every_state_is_explained() -> None:
    texts = [state.explanation for state in State]
    assert all(texts)
    assert len(set(texts)) == len(State)


@pytest.mark.parametrize(
    ("dump", "native"),
    [
        ("MPS: registered at RegisterMPS_0.cpp:1 [kernel]\n", True),
        ("CPU: x\nMPS: registered at /x/MPSFallback.mm:90 [kernel]\n", False),
        ("MPS: registered at fallback.cpp:35 [ boxed ]\nMeta: registered [kernel]\n", False),
        ("CPU: registered at fallback.cpp:35 [ boxed ]\nMPS: registered [kernel]\n", True),
    ],
)
def test_what_torch_hands_to_the_cpu_is_no_kernel(monkeypatch: pytest.MonkeyPatch, dump: str, native: bool) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(torch._C, "_dispatch_has_kernel_for_dispatch_key", lambda overload, key: key == "MPS")
    monkeypatch.setattr(torch._C, "_dispatch_dump", lambda overload: dump)
    assert dispatcher.has_mps_kernel("aten::embedding_renorm_") == native
    assert dispatcher.has_mps_kernel("aten::linalg_svd.U") == native
    assert dispatcher.has_mps_kernel("aten::mode")
    monkeypatch.setattr(torch._C, "_dispatch_has_kernel_for_dispatch_key", lambda overload, key: key == "CPU")
    assert not dispatcher.has_mps_kernel("aten::mode")
    assert not dispatcher.has_mps_kernel("aten::embedding_renorm_")


def test_what_is_used_inside_and_before_stands_all_the_time(fake: FakeDispatcher) -> None:
    registration.enable("mode", "heaviside")
    standing = list(fake.alive)
    with registration.use("mode", "take"):
        assert fake.alive[:2] == [row for row in standing if row[0] in MODE]
    assert [row for row in fake.alive if row[0] in MODE] == fake.alive[:2] == standing[:2]
    assert set(fake.registered()) == {*MODE, "aten::heaviside.out"}


def test_a_use_that_ends_before_a_later_one_loses_nothing(fake: FakeDispatcher) -> None:
    """Threads share the dispatcher: the first of two may leave while the second is inside."""
    registration.enable("mode")
    first, second = registration.use("heaviside"), registration.use("aten::take.out")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert registration.registered() == ("aten::take.out",)
    assert fake.registered() == ["aten::take.out"]
    second.__exit__(None, None, None)
    assert registration.registered() == MODE
    assert sorted(fake.registered()) == sorted(MODE)


def test_what_is_enabled_inside_use_ends_with_it(fake: FakeDispatcher) -> None:
    with registration.use("heaviside"):
        registration.enable("mode")
        registration.disable("heaviside")
        assert registration.registered() == MODE
    assert registration.registered() == ()


def test_under_a_counter_the_other_calls_of_an_override_still_go_to_torch(fake: FakeDispatcher) -> None:
    pool(fake)
    registration.enable("_adaptive_avg_pool2d")
    with registration.counting("_adaptive_avg_pool2d") as calls:
        assert len(fake.alive) == 1
        assert fake.call("aten::_adaptive_avg_pool2d", torch.ones(1, 1, 6, 6), [3, 3])[0] == "torch's"
        assert not calls
    assert fake.registered() == ["aten::_adaptive_avg_pool2d"]
    assert fake.call("aten::_adaptive_avg_pool2d", torch.ones(1, 1, 6, 6), [3, 3])[0] == "torch's"


def test_who_registered_later_answers_and_the_status_says_so(
    fake: FakeDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    registration.enable("heaviside")
    monkeypatch.setattr(dispatcher, "is_registered_in", IS_REGISTERED_IN)
    file = registered_kernel.__file__
    for where, state in ((file, State.registered), ("/elsewhere/kernels.py", State.replaced)):
        dump = f"CPU: registered at a.cpp:1 [ kernel ]\nMPS: registered at {where}:90 [ boxed ]\n"
        dump += f"MPS (inactive): registered at {file}:9 [ boxed ]\n"
        monkeypatch.setattr(torch._C, "_dispatch_dump", lambda overload, dump=dump: dump)
        assert states()["aten::heaviside.out"] is state
    assert registration.disable("heaviside") == ("aten::heaviside.out",)
