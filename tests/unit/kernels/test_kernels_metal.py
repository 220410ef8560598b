"""The Metal source of every family under the strict check: address spaces, limits, C++14."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.kernels.runtime import catalog
from mpsmith.kernels.runtime.shader import assembled
from mpsmith.kernels.verification.evidence import source_files
from mpsmith.simulator.metal import MetalSyntaxError, check, compile
from support.needs import needs_metal_on_host

needs_metal_on_host()


def metal_file(family: str) -> Path:
    return next(path for path in source_files(family) if path.suffix == ".metal")


@pytest.mark.parametrize("family", catalog.families())
def test_the_source_is_clean(family: str) -> None:
    path = metal_file(family)
    assert check(assembled(path), path, strict=True, include=[]) == []


def test_an_error_names_the_file_and_line_that_people_edit(tmp_path: Path) -> None:
    path = tmp_path / "broken.metal"
    path.write_text('#include "shared/elementwise.metal"\n\nstruct broken {\n  double value;\n};\n')
    with pytest.raises(MetalSyntaxError, match=r"broken\.metal:4:"):
        compile(assembled(path))
