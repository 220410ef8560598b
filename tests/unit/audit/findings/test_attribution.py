"""From an entry of a case source to the overloads that answer for it, asked directly."""

from __future__ import annotations

import pytest

from mpsmith.audit.findings.attribution import Attribution, SourceEntry, base_name, is_named_after, out_arguments
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.releases.surface.overloads import Dispatch
from support.surfaces import overload, surface

OUT = "Tensor self, *, Tensor(a!) out"
SURFACE = surface(
    overload("shrink"),
    overload("shrink_", arguments="Tensor(a!) self"),
    overload("shrink.out", arguments=OUT),
    overload("shrink.Scalar", arguments="Tensor self, Scalar other"),
    overload("shrink.native", dispatch=Dispatch.NATIVE),
    overload("shrink.other_out", arguments="Tensor self, *, Tensor(a!) other"),
    overload("shrink.generated", generated_from="aten::shrink"),
    overload("widen"),
    overload("widen.out", arguments=OUT),
    overload("linalg_svd"),
    overload("relu"),
    overload("relu_", arguments="Tensor(a!) self"),
    overload("relu.generated_out", generated_from="aten::relu"),
    overload("out_alone.out", arguments=OUT),
)
ENTRY = SourceEntry("opinfo", "shrink", "")


def key(operator: str, dtype: str = "float32", source: str = "opinfo", mode: str = "fallback") -> GroupKey:
    return GroupKey(source, operator, "", dtype, mode)


def attribution(calls: dict[GroupKey, dict[str, bool]] | None = None) -> Attribution:
    full = {
        group: {f"aten::{name}": outermost for name, outermost in names.items()}
        for group, names in (calls or {}).items()
    }
    return Attribution(SURFACE, full)


def suspects(operator: str, calls: dict[str, bool] | None = None, source: str = "opinfo") -> tuple[list[str], bool]:
    group = key(operator, source=source)
    result = attribution({group: calls} if calls else {}).suspects(SourceEntry.of(group), "float32")
    return [name.removeprefix("aten::") for name in result.overloads], result.namesakes


# ---- suspects


def test_an_entry_named_after_an_overload_is_attributed_to_it() -> None:
    assert suspects("shrink.out", {"relu": True}) == (["shrink.out"], True)
    assert suspects("shrink.unknown", {"relu": True}) == (["relu"], False)
    assert suspects("relu", {"widen": True}) == (["widen"], False), "a bare name is not the name of an overload"


def test_of_outermost_calls_those_named_like_the_entry_are_suspects() -> None:
    assert suspects("nn.functional.shrink", {"shrink_": True, "relu": True}) == (["shrink_"], True)
    assert suspects("nn.Shrink", {"shrink_": True, "relu": True}, source="modules") == (["shrink_"], True)
    assert suspects("linalg.svd", {"linalg_svd": True, "relu": True}) == (["linalg_svd"], True)
    assert suspects("torch.ops.aten.shrink.Scalar", {"shrink.Scalar": True, "relu": True}) == (["shrink.Scalar"], True)
    assert suspects("relu.shrink", {"relu": True, "widen": True}) == (["relu", "widen"], False)


def test_inner_calls_are_not_suspects() -> None:
    assert suspects("nosuch", {"relu": False}) == ([], True)


def test_without_a_trace_the_functional_overloads_of_that_name_are_suspects() -> None:
    assert suspects("relu") == (["relu"], True)
    assert suspects("nn.functional.relu") == (["relu"], True)
    assert suspects("linalg.svd") == (["linalg_svd"], True)
    assert suspects("out_alone") == ([], True)


def test_calls_with_other_dtypes_come_before_the_entrys_name() -> None:
    result = attribution({key("relu", "int8"): {"widen": True}}).suspects(SourceEntry("opinfo", "relu", ""), "float32")
    assert result.overloads == ("aten::widen",)


def test_calls_of_both_modes_count_and_one_outermost_call_is_enough() -> None:
    modes = {
        key("shrink"): {"relu": True, "widen": False},
        key("shrink", mode="strict"): {"relu": False, "widen": True},
    }
    assert attribution(modes).called_overloads(ENTRY, "float32") == {"aten::relu": True, "aten::widen": True}
    assert attribution(modes).called_overloads(ENTRY, "int8") == {}


def test_one_suspect_is_certain_and_two_are_not() -> None:
    assert attribution({key("x"): {"relu": True}}).suspects(SourceEntry("opinfo", "x", ""), "float32").certain
    assert (
        not attribution({key("x"): {"relu": True, "widen": True}})
        .suspects(SourceEntry("opinfo", "x", ""), "float32")
        .certain
    )


# ---- structured operators


CALLED = ("shrink", "shrink_", "shrink.Scalar", "shrink.native", "shrink.other_out", "shrink.generated", "widen")


def fallen_back(attributed: Attribution, named: str, entry: SourceEntry = ENTRY, dtype: str = "float32") -> list[str]:
    return [name.removeprefix("aten::") for name in attributed.fallen_back(entry, dtype, [f"aten::{named}"])]


def test_who_hands_over_to_an_out_overload_fell_back_with_it() -> None:
    attributed = attribution({key("shrink"): dict.fromkeys((*CALLED, "shrink.out", "nosuch"), True)})
    assert fallen_back(attributed, "shrink.out") == ["shrink.out", "shrink", "shrink_"]
    assert fallen_back(attributed, "shrink") == ["shrink"], "a functional overload means only itself"
    assert fallen_back(attributed, "nosuch.out") == ["nosuch.out"]
    assert fallen_back(attributed, "shrink.generated") == ["shrink.generated"], "its schema is not known"


def test_fallbacks_are_those_of_this_entry_and_dtype() -> None:
    attributed = attribution(
        {
            key("shrink"): {"shrink": True, "widen": True},
            key("shrink", "int8"): {"shrink_": True},
            key("other"): {"relu": True},
        }
    )
    assert fallen_back(attributed, "shrink.out") == ["shrink.out", "shrink"]
    assert fallen_back(attributed, "widen.out") == ["widen.out", "widen"]
    assert fallen_back(attributed, "shrink.out", dtype="int8") == ["shrink.out", "shrink_"]
    assert fallen_back(attributed, "shrink.out", entry=SourceEntry("opinfo", "other", "")) == ["shrink.out"]


def test_names_are_unique() -> None:
    attributed = attribution({key("shrink"): {"shrink": True}})
    assert attributed.fallen_back(ENTRY, "float32", ["aten::shrink", "aten::shrink.out", "aten::shrink"]) == (
        "aten::shrink",
        "aten::shrink.out",
    )


# ---- names and schemas


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("aten::softshrink_.out", "softshrink"),
        ("aten::_softmax", "softmax"),
        ("softshrink", "softshrink"),
        ("aten::sort.values_stable", "sort"),
        ("torchvision::nms", "nms"),
    ],
)
def test_the_bare_name_of_an_overload(name: str, bare: str) -> None:
    assert base_name(name) == bare


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("Tensor(a!) self, *, Tensor(b!) out", ("Tensor self",)),
        ("Tensor self, Scalar b=0.5, *, Tensor(a!) out", ("Tensor self", "Scalar b")),
        ("Tensor self, *, bool c=False, Tensor(a!) x, Tensor(b!) y", ("Tensor self", "bool c")),
        ("Tensor(a!) self", None),
        ("Tensor(a!) self, *, bool c", None),
        ("", None),
        ("Tensor(a -> *) self, *, Tensor(b!) out", ("Tensor self",)),
        ("*, Tensor(a!) out", ()),
        ("Tensor self, str s='a=b', *, Tensor(a!) out", ("Tensor self", "str s")),
        ("Tensor(a|b) self, float[2] r=[0, 1], *, Tensor(a!) out", ("Tensor self", "float[2] r")),
    ],
)
def test_arguments_less_the_out_tensors(arguments: str, expected: tuple[str, ...] | None) -> None:
    assert out_arguments(f"aten::a({arguments}) -> (Tensor, Tensor)") == expected


def test_entries_are_in_the_order_of_source_operator_and_variant() -> None:
    entries = [
        SourceEntry("b", "a", ""),
        SourceEntry("a", "b", "x"),
        SourceEntry("a", "b", ""),
        SourceEntry("a", "a", "z"),
    ]
    assert sorted(entries) == [entries[3], entries[2], entries[1], entries[0]]
    assert [entry.name for entry in sorted(entries)] == ["a.z", "b", "b.x", "a"]


@pytest.mark.parametrize(
    ("entry", "overload_name", "named"),
    [
        ("relu", "aten::relu", True),
        ("relu", "aten::relu_.out", True),
        ("linear.out", "aten::linear.out", True),
        ("linalg.svd", "aten::_linalg_svd.U", True),
        ("nn.functional.linear", "aten::linear", True),
        ("torch.ops.aten.relu.default", "aten::relu", True),
        ("torch.ops.aten.relu.default", "aten::default", False),
        ("nn.functional.linear", "aten::functional", False),
        ("nn.linear", "aten::linear", False),
        ("masked.mean", "aten::mean", False),
        ("masked.mean", "aten::masked", True),
        ("relu", "aten::relu6", False),
        ("mode.values", "aten::mode", True),
        ("max_pool2d", "aten::max", False),
    ],
)
def test_which_entries_are_named_after_an_overloads_operator(entry: str, overload_name: str, named: bool) -> None:
    assert is_named_after(entry, overload_name) is named
