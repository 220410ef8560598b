"""What Apple's compiler refuses and clang accepts: the programs of `apple_rules.yaml`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from mpsmith.simulator import metal
from support.needs import needs_metal_on_host

needs_metal_on_host()

PREAMBLE = "#include <metal_stdlib>\nusing namespace metal;\n"
INDEX = "uint i [[thread_position_in_grid]]"
RULES: dict[str, dict[str, str]] = {
    rule["name"]: rule for rule in yaml.safe_load(Path(__file__).with_name("apple_rules.yaml").read_text("utf-8"))
}


def kernel(parameters: str, body: str) -> str:
    return f"kernel void k({parameters}, {INDEX}) {{ {body} }}"


def errors(source: str, version: metal.MetalVersion = "3.1") -> list[str]:
    return [d.message for d in metal.check(PREAMBLE + source, strict=True, metal=version) if d.severity == "error"]


@pytest.mark.parametrize("name", RULES)
def test_is_refused_with_its_source_and_the_neighbour_is_not(name: str) -> None:
    rule = RULES[name]
    refused, accepted = errors(rule["refused"]), rule.get("accepted", "")
    assert any(rule["says"] in message for message in refused), refused
    assert errors(accepted) == []
    assert [d for d in metal.check(PREAMBLE + accepted) if d.severity == "error"] == []


def test_lambdas_came_with_3_2() -> None:
    source = kernel("device float* o, constant int* n", "auto f = [](float x) { return x + 1; }; o[i] = f(o[n[i]]);")
    assert "no lambda" in errors(source, "3.1")[0]
    assert errors(source, "3.2") == errors(source, "4.0") == []


def test_metal_4_is_c_17() -> None:
    source = PREAMBLE + kernel("device float* o", "if constexpr (true) o[i] = 1;")
    assert [d.rule for d in metal.check(source, strict=True, metal="3.2")] == ["c++14"]
    assert metal.check(source, strict=True, metal="4.0") == []


def test_the_version_is_a_macro() -> None:
    source = PREAMBLE + "#if __METAL_VERSION__ < {}\n#error too old\n#endif\n"
    for version, number in (("3.1", 310), ("3.2", 320), ("4.0", 400)):
        assert errors(source.format(number), version) == []
        assert "too old" in errors(source.format(number + 1), version)[0]


def test_nothing_declares_metal_without_its_headers() -> None:
    (error,) = metal.check(f"using namespace metal;\n{kernel('device float* o', 'o[i] = exp(o[i]);')}", strict=True)
    assert (error.line, error.rule) == (1, "apple")
    assert "#include <metal_stdlib>" in error.message
    assert (
        metal.check(f"#include <metal_math>\nusing namespace metal;\n{kernel('device float* o', 'o[i] = exp(o[i]);')}")
        == []
    )


def test_a_missing_header_has_no_other_reason() -> None:
    (error,) = metal.check('#include "nowhere.h"\n', strict=True)
    assert error.message == "'nowhere.h' file not found"
