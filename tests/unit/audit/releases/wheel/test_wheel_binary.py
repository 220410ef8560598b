import io
import struct
from pathlib import Path
from types import SimpleNamespace

import pytest

from mpsmith.audit.releases.surface import surface_of
from mpsmith.audit.releases.wheel.agreement import differences
from mpsmith.audit.releases.wheel.binary import BinaryEvidence
from mpsmith.audit.releases.wheel.byte_ranges import MappedRanges, StreamRanges
from mpsmith.audit.releases.wheel.errors import MalformedBinaryError, WheelError
from mpsmith.audit.releases.wheel.macho import read_header, read_image
from mpsmith.audit.releases.wheel.metallib import is_metal_section, read_library
from mpsmith.audit.releases.wheel.registrations import Kind, read_registrations


def read(data: bytes) -> BinaryEvidence:
    libraries = []
    source = StreamRanges(io.BytesIO(data), len(data))
    image = read_image(
        source, is_metal_section, lambda section, ranges: libraries.append(read_library(section, ranges))
    )
    header = image.header
    return BinaryEvidence(tuple(read_registrations(image)), tuple(libraries), header.minimum_macos, header.sdk)


def kinds(evidence: BinaryEvidence, key: str = "MPS") -> dict[str, Kind]:
    return {name: registration.kind for name, registration in evidence.registered(key).items()}


def test_registrations_are_read_by_key(build: SimpleNamespace) -> None:
    evidence = read(build.MachO().build())
    assert evidence.registered("MPS")["abs"].generated
    assert not evidence.registered("MPS")["embedding_renorm_"].generated
    assert kinds(evidence) == {
        "abs": Kind.KERNEL,
        "sin.out": Kind.KERNEL,
        "sin": Kind.KERNEL,
        "embedding_renorm_": Kind.FALLBACK,
        "linalg_svd": Kind.FALLBACK,
        "_slow_conv2d_forward": Kind.REFUSAL,
    }
    assert kinds(evidence, "SparseMPS") == {"abs": Kind.KERNEL}
    assert kinds(evidence, "AutocastMPS") == {"linear": Kind.KERNEL}
    assert kinds(evidence, "CPU") == {}
    assert (evidence.minimum_macos, evidence.sdk) == ("14.0", "26.5")


def test_a_boxed_function_in_a_register_does_not_spill_into_another_initializer(build: SimpleNamespace) -> None:
    initializers = {
        build.by_hand("MPS", 1): [build.Call("a", build.FALLBACK, build.BOXED_CONSTRUCTOR)],
        build.by_hand("MPS", 2): [build.Call("b", "__ZN2at3fooE", build.BOXED_CONSTRUCTOR)],
    }
    assert kinds(read(build.MachO(initializers).build())) == {"a": Kind.FALLBACK, "b": Kind.KERNEL}


def test_names_with_a_namespace_keep_it(build: SimpleNamespace) -> None:
    evidence = read(build.MachO({build.generated("MPS", 1, "quantized"): [build.Call("add")]}).build())
    assert [registration.overload for registration in evidence.registrations] == ["quantized::add"]
    assert kinds(evidence) == {}


def test_metal_functions_are_listed_once(build: SimpleNamespace) -> None:
    metal = {"metal_basic": ["abs_float", "abs_half"], "metal_40": ["abs_float", "abs_bfloat"]}
    evidence = read(build.MachO(metal=metal).build())
    assert [(library.section, library.functions) for library in evidence.libraries] == [
        ("metal_basic", ("abs_float", "abs_half")),
        ("metal_40", ("abs_float", "abs_bfloat")),
    ]
    assert evidence.metal_functions() == ("abs_float", "abs_half", "abs_bfloat")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cpu": 0x01000007}, "built for Intel Macs"),
        ({"cpu": 7}, "unknown processor"),
        ({"magic": 0xBEBAFECA}, "universal binary"),
        ({"magic": 0x464C457F}, "not a 64-bit Mach-O file"),
        ({"symbols": False}, "has no symbol table"),
    ],
)
def test_rejects_other_binaries(build: SimpleNamespace, change: dict[str, int], message: str) -> None:
    with pytest.raises(MalformedBinaryError, match=message):
        read(build.MachO(**change).build())


def test_rejects_a_binary_that_ends_early(build: SimpleNamespace) -> None:
    data = build.MachO().build()
    with pytest.raises(MalformedBinaryError, match="refers to bytes"):
        read(data[:-200])
    with pytest.raises(MalformedBinaryError, match="refers to bytes 0 to 32, but it has 0"):
        read(b"")


def test_rejects_symbol_names_outside_the_table(build: SimpleNamespace) -> None:
    data = bytearray(build.MachO().build())
    header = read_header(StreamRanges(io.BytesIO(data), len(data)))
    struct.pack_into("<I", data, header.symbol_offset, header.string_size)
    with pytest.raises(MalformedBinaryError, match="names outside the string table"):
        read(bytes(data))


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [(0, 0, "metal_basic: not a Metal library"), (24, 1 << 40, "are outside of it"), (88, 1 << 30, "ends too early")],
)
def test_a_damaged_metal_library_is_an_error(build: SimpleNamespace, offset: int, value: int, message: str) -> None:
    data = bytearray(build.MachO().build())
    struct.pack_into("<Q" if offset == 24 else "<I", data, data.index(b"MTLB") + offset, value)
    with pytest.raises(MalformedBinaryError, match=message):
        read(bytes(data))


def test_a_stream_gives_ascending_ranges_only() -> None:
    source = StreamRanges(io.BytesIO(bytes(range(100))), 100)
    assert bytes(source.take(10, 5)) == bytes(range(10, 15))
    assert bytes(source.take(20, 0)) == b""
    with pytest.raises(MalformedBinaryError, match="overlap"):
        source.take(12, 4)
    with pytest.raises(MalformedBinaryError, match="refers to bytes 90 to 110, but it has 100"):
        source.take(90, 20)
    source.finish()


def test_a_stream_that_is_shorter_or_longer_than_announced_is_an_error() -> None:
    with pytest.raises(MalformedBinaryError, match="ends after 10 bytes, 20 were announced"):
        StreamRanges(io.BytesIO(bytes(10)), 20).take(5, 10)
    with pytest.raises(WheelError, match="longer than its entry says"):
        StreamRanges(io.BytesIO(bytes(10)), 5).finish()


def test_a_file_on_disk_is_mapped(build: SimpleNamespace, tmp_path: Path) -> None:
    path = tmp_path / "lib.dylib"
    path.write_bytes(build.MachO().build())
    with MappedRanges(path) as source:
        assert read_header(source).sdk == "26.5"
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(WheelError, match="cannot read"):
        MappedRanges(tmp_path / "empty")


def test_differences_are_explained_by_rules(build: SimpleNamespace) -> None:
    surface = surface_of(build.YAML, None, "2.99.0")
    explained = {(item.key, item.overload): item.rule for item in differences(surface, read(build.MachO().build()))}
    assert explained == {
        ("MPS", "_slow_conv2d_forward"): "hand-written refusal",
        ("MPS", "embedding_renorm_"): "hand-written fallback",
        ("MPS", "linalg_svd"): "hand-written fallback",
    }


def test_reports_unexplained_differences(build: SimpleNamespace) -> None:
    initializers = {
        build.generated("MPS", 1): [build.Call("abs"), build.Call("sin.out"), build.Call("mode")],
        build.by_hand("MPS", 2): [build.Call("linalg_svd")],
    }
    explained = differences(surface_of(build.YAML, None, "2.99.0"), read(build.MachO(initializers).build()))
    assert {(item.key, item.overload): (item.rule, item.explanation) for item in explained} == {
        ("MPS", "linalg_svd"): (
            "hand-written kernel",
            "C++ written by hand registers a kernel for it beside the generated code",
        ),
        ("MPS", "mode"): (None, "the yaml declares no kernel"),
        ("MPS", "sin"): (None, "the yaml declares a kernel and the binary has none"),
        ("SparseMPS", "abs"): (None, "the yaml declares a kernel and the binary has none"),
    }


def test_a_fallback_in_place_of_a_declared_kernel_is_reported(build: SimpleNamespace) -> None:
    initializers = {
        build.generated("MPS", 1): [build.Call("sin.out"), build.Call("sin")],
        build.generated("SparseMPS", 1): [build.Call("abs")],
        build.by_hand("MPS", 2): [build.Call("abs", build.FALLBACK, build.BOXED_CONSTRUCTOR)],
    }
    (explained,) = differences(surface_of(build.YAML, None, "2.99.0"), read(build.MachO(initializers).build()))
    assert (explained.overload, explained.registered, explained.rule) == ("abs", Kind.FALLBACK, None)
    assert explained.explanation == "the yaml declares a kernel and the binary registers a fallback to CPU"
