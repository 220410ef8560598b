"""What is recorded of overloads: arguments as data, which memory fits the installed torch, and how much there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from mpsmith.audit.cases.argument_search.changed_calls import variations
from mpsmith.audit.cases.calls.invocation import SchemaCall, arguments_of, fingerprint
from mpsmith.audit.cases.calls.recipes import decode, encode, signature, with_seeds
from mpsmith.audit.cases.calls.recorded_calls import FOLDER, OverloadCalls, RecordedCalls
from mpsmith.audit.cases.sources.schema import SchemaSource
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.nested import leaves
from mpsmith.audit.model.selection import Samples
from mpsmith.audit.releases.surface import installed_surface
from mpsmith.errors import MpsmithError

VECTOR = {"shape": [3], "dtype": "float32", "values": [0.5, 1.0, -2.0]}


def call(*args: object) -> dict[str, object]:
    return {"args": list(args), "kwargs": {}, "dtype": "float32"}


def cases_of(memory: RecordedCalls, operator: str, dtype: str = "float32"):
    key = GroupKey("schema", operator, "", dtype, "fallback")
    return list(SchemaSource(memory).cases(key, Samples.DEFAULT))


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr", "bsc"])
def test_compressed_matrices_survive_as_data(layout: str) -> None:
    block = ((1, 2),) if layout.startswith("b") else ()
    matrix = getattr(torch.eye(3, 4), f"to_sparse_{layout}")(*block)
    again = decode(encode(matrix), {"float32": "float16"})
    assert again.layout is matrix.layout
    assert again.dtype is torch.float16
    torch.testing.assert_close(again.to_dense().float(), matrix.to_dense(), atol=1e-3, rtol=1e-2)


def test_storages_and_devices_survive_as_data() -> None:
    storage = torch.arange(4.0).untyped_storage()
    assert list(decode(encode(storage), {})) == list(storage)
    assert decode("cpu", {}) == torch.device("cpu"), "as text it would stay behind when the call is made on mps"
    assert decode("sum", {}) == "sum"


def test_an_index_keeps_its_range_when_its_size_varies() -> None:
    indexed = call({"shape": [2, 4], "dtype": "float32"}, 0, {"shape": [4], "dtype": "int64", "values": [0, 1, 1, 0]})
    made = list(variations(indexed, seed=0))
    assert len({signature(other["args"]) for other in made}) == len(made) > 5
    assert all(signature(other["args"]) != signature(indexed["args"]) for other in made)
    longer = [other["args"][2] for other in made if isinstance(other["args"][2], dict)]
    assert {len(index["values"]) for index in longer} > {4}
    assert all(set(index["values"]) <= {0, 1} for index in longer)


def test_a_call_is_left_out_with_the_dtype_that_it_does_not_take() -> None:
    recorded = OverloadCalls([call(1), call(2)], ["float32", "int64"], {"int64": [0]})
    assert recorded.accepted("int64") == [call(2)]
    assert recorded.accepted("float32") == [call(1), call(2)]


def test_save_and_load_round_trip(tmp_path: Path) -> None:
    memory = RecordedCalls("2.13.0", {"aten::relu": OverloadCalls([call(VECTOR)], ["float32"], {}, schema="abc")})
    memory.save(tmp_path / "recorded")
    assert RecordedCalls.load(tmp_path / "recorded") == memory


@pytest.mark.parametrize(
    ("name", "alone"),
    [("aten::relu", True), ("aten::_make_dual", False), ("aten::_mps_convolution", False), ("prims::sin", False)],
)
def test_a_script_is_offered_only_where_torch_alone_repeats_the_call(name: str, alone: bool) -> None:
    assert SchemaCall(name).needs_torch_alone is alone


def test_a_damaged_memory_names_the_place_and_the_way_out(tmp_path: Path) -> None:
    RecordedCalls("2.13.0", {"aten::relu": OverloadCalls([call(VECTOR)], ["float32"])}).save(tmp_path)
    shard = tmp_path / "r.txt"
    shard.write_text(shard.read_text()[:-9])
    with pytest.raises(MpsmithError, match=r"r\.txt:2: .*mpsmith.audit.cases.argument_search"):
        RecordedCalls.load(tmp_path)


def test_lists_of_tensors_are_recorded_as_shapes_and_a_seed(tmp_path: Path) -> None:
    values = [
        {"dtype": "float32", "shape": [2], "values": [-1.0, 3.0]},
        {"dtype": "float32", "shape": [], "values": [2]},
    ]
    recorded = with_seeds({"args": [values, 1.5], "kwargs": {"out": values}, "dtype": "float32"})
    assert recorded["args"][0] == [
        {"dtype": "float32", "shape": [2], "range": [-1.0, 3.0], "seed": 0},
        {"dtype": "float32", "shape": [], "range": [-1.0, 3.0], "seed": 1},
    ]
    RecordedCalls("2.13.0", {"aten::_foreach_abs": OverloadCalls([recorded], ["float32"])}).save(tmp_path)
    assert (
        '{"dtype":"float32","range":[-1.0,3.0],"seed":2,"tensors":[[2],[]]}' in (tmp_path / "foreach.txt").read_text()
    )
    assert RecordedCalls.load(tmp_path).overloads["aten::_foreach_abs"].calls == [recorded]
    first, again = (arguments_of(recorded)[0][0] for _ in range(2))
    assert all(torch.equal(a, b) and a.min() >= -1 and a.max() <= 3 for a, b in zip(first, again, strict=True))


def test_only_changed_files_are_written(tmp_path: Path) -> None:
    overloads = {
        name: OverloadCalls([call(VECTOR)], ["float32"]) for name in ("aten::rsqrt_", "aten::relu", "aten::abs")
    }
    RecordedCalls("2.13.0", overloads).save(tmp_path)
    untouched = (tmp_path / "a.txt").stat()
    overloads["aten::relu"].calls.append(call(1))
    RecordedCalls("2.13.0", overloads).save(tmp_path)
    assert (tmp_path / "a.txt").stat().st_ino == untouched.st_ino
    names = [line.split(" ")[0] for line in (tmp_path / "r.txt").read_text().splitlines()]
    assert names == ["aten::relu", "", "", "aten::rsqrt_", ""]


def test_a_file_whose_overloads_are_forgotten_goes(tmp_path: Path) -> None:
    RecordedCalls("2.13.0", {"aten::relu": OverloadCalls([call(VECTOR)]), "mylib::f": OverloadCalls([call(1)])}).save(
        tmp_path
    )
    RecordedCalls("2.13.0", {"mylib::f": OverloadCalls([call(1)])}).save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mylib.txt", "torch.txt"]
    assert list(RecordedCalls.load(tmp_path).overloads) == ["mylib::f"]


def test_the_committed_memory_is_written_as_it_is_read(tmp_path: Path) -> None:
    RecordedCalls.load().save(tmp_path)
    texts = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in (FOLDER, tmp_path)]
    assert texts[0] == texts[1]


def test_calls_of_another_torch_are_replayed_if_the_schema_is_the_same() -> None:
    same, changed, gone = "aten::relu", "aten::abs", "aten::of_no_torch"
    memory = RecordedCalls(
        "2.12.0",
        {
            same: OverloadCalls([call(VECTOR)], ["float32"], schema=fingerprint(same)),
            changed: OverloadCalls([call(VECTOR)], ["float32"], schema="00000000"),
            gone: OverloadCalls([call(VECTOR)], ["float32"], schema="00000000"),
        },
    )
    assert [key.operator for key in SchemaSource(memory).groups()] == ["relu"]
    (case,) = cases_of(memory, "relu")
    assert case.skipped == ""


def test_a_call_that_this_cpu_refuses_is_skipped_and_says_so() -> None:
    refused = call(VECTOR, {"shape": [5], "dtype": "float32", "values": [1.0] * 5}, 1)
    memory = RecordedCalls(
        "2.12.0", {"aten::add.Tensor": OverloadCalls([refused], ["float32"], schema=fingerprint("aten::add.Tensor"))}
    )
    memory.overloads["aten::add.Tensor"].calls[0]["args"].pop()
    (case,) = cases_of(memory, "add.Tensor")
    assert case.skipped.startswith("recorded with torch 2.12.0; the CPU of this torch refuses it: The size of tensor a")
    assert "mpsmith.audit.cases.argument_search" in case.skipped


def test_the_committed_memory_knows_calls_of_98_percent_of_what_is_reachable() -> None:
    memory, surface = RecordedCalls.load(), installed_surface()
    reachable = [overload.name for overload in surface.overloads if overload.reachable]
    assert memory.torch == "2.13.0"
    calls = [memory.overloads[name] for name in reachable if name in memory.overloads]
    executable = sum(recorded.enough or recorded.refused for recorded in calls)
    assert executable >= 0.98 * len(reachable)
    assert all(r.errors and r.tried for r in calls if not r.calls), "an overload without calls says what was tried"
    assert set(memory.overloads) <= set(reachable)


def test_refused_calls_are_kept_only_where_mps_has_no_kernel_either() -> None:
    surface = installed_surface()
    refused = {name for name, recorded in RecordedCalls.load().overloads.items() if recorded.refused}
    assert "aten::mm.dtype" in refused
    assert not any(surface.by_name[name].dispatch.has_kernel for name in refused)


def test_calls_need_no_dtype_that_mps_lacks() -> None:
    for name, recorded in RecordedCalls.load().overloads.items():
        for accepted in recorded.calls:
            assert '"float64"' not in str(accepted).replace("'", '"'), name


@pytest.mark.parametrize(
    ("name", "pointwise"),
    [("clamp", True), ("exp", True), ("exp_", False), ("exp.out", False), ("sum", False), ("gelu_backward", False)],
)
def test_which_overloads_are_promised_strides(name: str, pointwise: bool) -> None:
    assert SchemaCall(f"aten::{name}").is_pointwise is pointwise


def test_few_overloads_are_recorded_with_empty_tensors_alone() -> None:
    overloads = RecordedCalls.load().overloads
    empty = [name for name, recorded in overloads.items() if recorded.calls and all(map(has_an_empty, recorded.calls))]
    assert "aten::bmm" not in empty
    assert len(empty) <= 20


def has_an_empty(recorded: dict[str, Any]) -> bool:
    args, kwargs = arguments_of(recorded)
    return any(isinstance(leaf, torch.Tensor) and not leaf.numel() for leaf in leaves((args, kwargs)))
