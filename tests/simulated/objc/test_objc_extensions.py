"""Extensions in Objective-C++ on the simulated device: built, loaded, run, and refused."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest
import torch

from mpsmith.simulator.errors import ExtensionLoadError
from mpsmith.simulator.objc import note
from mpsmith.simulator.objc.building import BuiltExtension, build_extension
from mpsmith.simulator.objc.compiler import ExtensionBuildError
from mpsmith.simulator.objc.loading import load_extension

pytestmark = pytest.mark.network  # Metal's declarations are fetched: mpsmith check --setup

PROGRAMS = Path(__file__).with_name("programs")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltExtension:
    folder = tmp_path_factory.mktemp("torch_interfaces")
    return build_extension("torch_interfaces", [PROGRAMS / "torch_interfaces.mm"], folder)


@pytest.fixture(scope="module")
def extension(built: BuiltExtension) -> ModuleType:
    module = load_extension(built.library)
    assert module is not None
    return module


def build(name: str, folder: Path) -> BuiltExtension:
    return build_extension(name, [PROGRAMS / f"{name}.mm"], folder)


@pytest.mark.parametrize("way", ["by_command_buffer", "by_stream", "by_kernel_function"])
@pytest.mark.parametrize("size", [1, 1000, 100_000])
def test_every_way_to_launch_runs_the_kernel(extension: ModuleType, way: str, size: int) -> None:
    values = torch.randn(size + 3)
    whole = values.to("mps")
    assert torch.equal(getattr(extension, way)(whole, 0.5).cpu(), values * 0.5)
    assert torch.equal(getattr(extension, way)(whole[3:], 2.0).cpu(), values[3:] * 2.0), "a view has an offset"


def test_torchs_command_buffer_is_one_of_metals(extension: ModuleType) -> None:
    assert extension.has_a_command_buffer()


def test_torchs_command_buffer_continues_after_a_commit(extension: ModuleType) -> None:
    assert extension.continues_after_commit()


def test_the_public_allocator_maps_a_tensor_for_the_host(extension: ModuleType) -> None:
    values = torch.arange(1.0, 5.0).to("mps")
    assert extension.read_shared(values) == (1.0, 16)
    assert extension.read_shared(values[1:]) == (-1.0, -1), "only the start of memory is known"
    alias = extension.host_alias(values)
    values += 1
    del values
    assert alias.tolist() == [2.0, 3.0, 4.0, 5.0]


def test_events_happen_and_measure_time(extension: ModuleType) -> None:
    happened, milliseconds = extension.events_around(torch.ones(3).to("mps"))
    assert happened
    assert 0 <= milliseconds < 60_000
    with pytest.raises(RuntimeError, match="both events must be made with enable_timing=true and be recorded"):
        extension.time_of_nothing()


def test_an_event_notifies_a_block(extension: ModuleType) -> None:
    assert extension.notified() == [False, True, True]


def test_the_generators_keys_and_limits_of_torchs_host(extension: ModuleType) -> None:
    assert extension.seeds() == [7, torch.mps._get_default_mps_generator().initial_seed()]
    generator = torch.Generator("mps").manual_seed(5)
    words = extension.next_state(generator)  # as host code draws
    assert words[5:] == [5, 0]
    assert generator.get_state()[:28].view(torch.uint32).tolist() == words
    assert generator.get_offset() == 1
    assert len({extension.key_of(number) for number in (0.1, -0.1, 0.1000001)}) == 3
    row = torch.zeros(1, dtype=torch.int8).to("mps")
    assert not extension.too_large(row)
    assert extension.too_large(row.expand(2**31))


def test_a_grid_has_two_dimensions(extension: ModuleType) -> None:
    rows = torch.arange(3, dtype=torch.int32)[:, None] * 10 + torch.arange(4, dtype=torch.int32)
    assert torch.equal(extension.grid_of(4, 3).cpu(), rows)


def test_a_program_takes_parameters(extension: ModuleType) -> None:
    for dtype in (torch.float32, torch.int64):
        ones = torch.ones(5, dtype=dtype)
        assert torch.equal(extension.parametrized(ones.to("mps")).cpu(), ones + 5)


def test_kernel_errors_are_raised_at_the_next_synchronisation(extension: ModuleType) -> None:
    extension.report_error(torch.tensor([1.0, -1.0, -2.0]).to("mps"))
    with pytest.raises(torch.AcceleratorError, match="no1"):
        torch.mps.synchronize()
    extension.report_error(torch.tensor([1.0]).to("mps"))
    torch.mps.synchronize()


def test_a_retained_buffer_outlives_its_tensor(extension: ModuleType) -> None:
    assert extension.outlives_tensor() == 1.0


def test_rejects_the_buffer_of_a_freed_tensor(extension: ModuleType) -> None:
    with pytest.raises(RuntimeError, match="used again: the buffer of a tensor that is gone"):
        extension.used_after_tensor()


def test_the_stream_copies_buffers(extension: ModuleType) -> None:
    source, target = torch.arange(10.0).to("mps"), torch.zeros(10).to("mps")
    extension.copy_on_stream(source, target)
    assert torch.equal(target.cpu(), torch.arange(10.0))


def test_views_are_gathered_and_scattered_and_copied_to_the_cpu(extension: ModuleType) -> None:
    copied = extension.copied(torch.arange(6.0).to("mps")[1::2])
    assert copied.device.type == "cpu"
    assert copied.tolist() == [1, 1, 3, 1, 5, 1]


def test_offsets_of_operands_are_in_bytes(extension: ModuleType) -> None:
    out, left = torch.zeros(2, 3).to("mps"), torch.zeros(3, 2, dtype=torch.int16).to("mps").t()
    offsets = extension.offsets(out, left, torch.zeros(3).to("mps"))
    assert offsets == [0, 0, 0, 4, 4, 4, 8, 8, 8, 12, 2, 0, 16, 6, 4, 20, 10, 8]


def test_an_exception_comes_through_a_block(extension: ModuleType) -> None:
    with pytest.raises(ValueError, match="thrown in a block"):
        extension.throw_in_block()
    extension.by_stream(torch.ones(3).to("mps"), 2.0)


def test_a_mistake_where_nothing_can_be_thrown_is_raised_by_the_next_operator(extension: ModuleType) -> None:
    ones = torch.ones(3).to("mps")
    extension.forget_end_encoding(ones)
    with pytest.raises(RuntimeError, match="released without endEncoding"):
        ones + ones
    assert torch.equal((ones + ones).cpu(), torch.full((3,), 2.0))


def test_a_selector_that_is_asked_for_need_not_be_there(extension: ModuleType) -> None:
    assert not extension.asks_first()


def test_a_second_load_answers_the_same_module(built: BuiltExtension, extension: ModuleType) -> None:
    assert load_extension(built.library) is extension


def test_another_build_of_a_loaded_extension_is_refused(
    built: BuiltExtension, extension: ModuleType, tmp_path: Path
) -> None:
    copy = tmp_path / built.library.name
    copy.write_bytes(built.library.read_bytes())
    with pytest.raises(ExtensionLoadError, match=r"another build of .* start a new process"):
        load_extension(copy)


def test_an_extension_for_another_torch_is_refused(built: BuiltExtension, tmp_path: Path) -> None:
    older = tmp_path / f"older_{built.library.name}"
    made = json.dumps(torch.__version__).encode()
    content, there = built.library.read_bytes(), b'"torch": ' + made
    assert there in content
    older.write_bytes(content.replace(there, b'"torch": "' + b"9" * (len(made) - 2) + b'"'))
    with pytest.raises(ExtensionLoadError, match=r"was built for torch 9+, and this is torch .*: build it again"):
        load_extension(older)


def test_a_library_of_another_maker_is_refused(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.so"
    foreign.write_bytes(b"\x7fELF")
    assert note.read(foreign) is None
    with pytest.raises(ExtensionLoadError, match="was not built for the simulated mps device"):
        load_extension(foreign)
    with pytest.raises(ExtensionLoadError, match=r"cannot read .*: No such file"):
        load_extension(tmp_path / "gone.so")


def test_an_unknown_selector_is_named_with_its_class_when_it_is_sent(extension: ModuleType) -> None:
    with pytest.raises(RuntimeError, match=r"Device newTextureWithDescriptor:\]: the simulated Metal host has no such"):
        extension.make_texture()


def test_an_unknown_class_is_named_when_it_is_built(tmp_path: Path) -> None:
    with pytest.raises(ExtensionBuildError, match="the simulated Metal host has no class MTLTextureDescriptor"):
        build("unknown_class", tmp_path)


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    module = load_extension(build("needs_graph", tmp_path_factory.mktemp("graphs")).library)
    assert module is not None
    return module


def test_a_graph_in_torchs_own_way_runs_on_the_stand_in(graphs: ModuleType) -> None:
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    on_mps = x.to("mps")
    assert torch.equal(graphs.product(on_mps, y.to("mps")).cpu(), x * y)
    assert torch.equal(graphs.product(on_mps[1:], y.to("mps")[1:]).cpu(), (x * y)[1:])
    assert torch.equal(graphs.product(on_mps.t(), y.to("mps").t()).cpu(), (x * y).t())


def test_arrays_and_casts_of_torchs_host_reach_a_graph(graphs: ModuleType) -> None:
    x = torch.arange(120, dtype=torch.int8).reshape(4, 2, 3, 5).transpose(0, 1)
    expected = torch.log1p(x.permute(0, 3, 1, 2).float()).flatten() * 3
    assert torch.allclose(graphs.by_arrays(x.to("mps"), 3.0).cpu(), expected)


def test_a_graph_of_an_extension_has_the_limits_of_mpsgraph(graphs: ModuleType) -> None:
    x = torch.randn(2, 1, 3, 2)
    assert torch.equal(graphs.scan(x.to("mps")).cpu(), x.cumsum(0))
    with pytest.raises(RuntimeError, match=r"axis from the end 5: .* only supports the last four axes .*#154881"):
        graphs.scan(x.to("mps")[None])


def test_the_matrix_multiplication_of_mps_runs_on_the_stand_in(graphs: ModuleType) -> None:
    a, b, out = torch.randn(5, 3), torch.randn(4, 3), torch.full((5, 4), torch.nan)
    result = out.to("mps")
    graphs.multiply(result, a.to("mps"), b.to("mps"), 0.0)
    torch.testing.assert_close(result.cpu(), 2 * a @ b.t())
    graphs.multiply(result, a.to("mps")[:2], b.to("mps"), 0.5)
    torch.testing.assert_close(result.cpu()[:2], 3 * a[:2] @ b.t())


def test_an_error_of_the_compiler_has_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(ExtensionBuildError, match=r"with_errors\.mm:3:\d+: error: .*newCommandLine") as raised:
        build("with_errors", tmp_path)
    assert raised.value.diagnostics[0].line == 3
