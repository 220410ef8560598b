"""The tables of kernels against torch's own schemas; what importing the package does where there is no mps device."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mpsmith import autoload
from mpsmith.audit.cases.sources import case_sources
from mpsmith.audit.model.selection import DTYPES, Samples
from mpsmith.kernels.runtime import catalog, dispatcher
from mpsmith.kernels.runtime.catalog import Kernel
from mpsmith.kernels.runtime.shader import assembled, sources
from mpsmith.kernels.verification import source as source_module
from mpsmith.kernels.verification.source import KernelSource, calls_of
from support.later_schemas import schema_of

KERNELS = catalog.all_kernels()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.overload)
def test_function_has_the_signature_of_its_overload(kernel: Kernel) -> None:
    schema = schema_of(kernel.overload)
    parameters = inspect.signature(kernel.function).parameters
    assert list(parameters) == [argument.name for argument in schema.arguments]
    for argument in schema.arguments:
        parameter = parameters[argument.name]
        assert (parameter.kind is inspect.Parameter.KEYWORD_ONLY) == argument.kwarg_only
        # The dispatcher leaves out arguments that have their default: the function must have the same one.
        if argument.has_default_value():
            default = list(parameter.default) if isinstance(parameter.default, tuple) else parameter.default
            assert default == argument.default_value
        else:
            assert parameter.default is inspect.Parameter.empty


def test_overloads_are_unique() -> None:
    overloads = [kernel.overload for kernel in KERNELS]
    assert len(overloads) == len(set(overloads))


@pytest.mark.parametrize("family", catalog.families())
def test_cases_call_every_operator_of_the_family(family: str) -> None:
    verified = {operator for call in calls_of(family) for operator in call.operators}
    kernels = catalog.family(family)
    elsewhere = {kernel.operator for kernel in kernels if kernel.library != "aten"}
    assert {kernel.operator for kernel in kernels if dispatcher.exists(kernel.overload)} | elsewhere == verified


def test_every_folder_with_a_metal_file_is_a_family() -> None:
    """No list names them: a new folder is enough."""
    folders = {path.parent.name for path in Path(catalog.__file__).parents[1].glob("*/*.metal")} - {"shared"}
    assert set(catalog.families()) == folders
    assert {"mode", "put_take"} <= folders


@pytest.fixture
def all_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if torch had none of the operators."""
    calls = [call for family in catalog.families() for call in calls_of(family)]
    monkeypatch.setattr(
        source_module, "registered", lambda: [f"{name}.out" for call in calls for name in call.operators]
    )


def test_source_has_only_registered_families(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "registered", lambda: ["aten::mode.values"])
    assert {key.operator for key in KernelSource().groups()} == {"mode"}
    monkeypatch.setattr(source_module, "registered", list)
    assert list(KernelSource().groups()) == []


@pytest.mark.usefixtures("all_registered")
def test_source_has_a_group_for_each_call_and_dtype() -> None:
    source = KernelSource()
    groups = {key.label: key for key in source.groups()}
    calls = [call for family in catalog.families() for call in calls_of(family)]
    assert len(groups) == sum(len(call.dtypes) for call in calls)
    assert {key.dtype for key in groups.values()} <= set(DTYPES)
    assert "kernels:put_.accumulate:int64" in groups
    cases = list(source.cases(groups["kernels:mode:float32"], Samples.DEFAULT))
    assert cases[0].differentiable
    assert cases[0].args[0].requires_grad
    titles = {case.title for case in cases}
    assert {"", "transposed", "expanded", "offset", "nan", "gradients of the outputs transposed"} <= titles


@pytest.mark.usefixtures("all_registered")
def test_written_tensors_are_never_expanded() -> None:
    (key,) = (key for key in KernelSource().groups() if key.label == "kernels:put_:float32")
    titles = {case.title for case in KernelSource().cases(key, Samples.DEFAULT)}
    assert "transposed" in titles
    assert "expanded" not in titles


def test_audit_finds_the_source() -> None:
    """`mpsmith audit --with-kernels` imports mpsmith.kernels as any package that offers sources."""
    import mpsmith.kernels

    assert "mpsmith_case_sources" not in vars(mpsmith.kernels)
    (source,) = mpsmith.kernels.mpsmith_case_sources
    assert isinstance(source, KernelSource)
    assert type(case_sources(["mpsmith.kernels"])["kernels"]) is KernelSource
    assert "kernels" not in case_sources([])
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        mpsmith.kernels.nothing  # noqa: B018


def test_includes_are_expanded_once() -> None:
    for family in catalog.families():
        path = sources_of(family)[0]
        text = assembled(path)
        assert '#include "' not in text
        for source in sources(path):
            assert text.count(f'#line 1 "{source.name}"') == 1


def sources_of(family: str) -> list:  # type: ignore[type-arg]
    from mpsmith.kernels.verification.evidence import source_files

    return [path for path in source_files(family) if path.suffix == ".metal"]


def run(script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", script],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


WITHOUT_DEVICE = "import torch; torch.backends.mps.is_available = lambda: False\n"


def test_import_without_device() -> None:
    done = run(
        f"{WITHOUT_DEVICE}import mpsmith.kernels as kernels\n"
        "print(kernels.registered(), kernels.enable('mode'), {s.state.value for s in kernels.status()})"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "() () {'no mps device'}"


def test_import_without_device_loads_no_family_audit_or_yaml() -> None:
    done = run(
        f"{WITHOUT_DEVICE}import sys, mpsmith.kernels\n"
        "print([m for m in sys.modules if m.startswith(('mpsmith.audit', 'mpsmith.kernels.verification'))])\n"
        "print([m for m in sys.modules if m.startswith('mpsmith.kernels.') and '.runtime' not in m])\n"
        "print([m for m in ('ruamel.yaml', 'pydantic', 'yaml') if m in sys.modules])"
    )
    assert done.stdout.splitlines() == ["[]"] * 3


def test_autoload_is_opt_in_and_never_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpsmith.kernels", None)  # an import of it fails
    monkeypatch.delenv(autoload.VARIABLE, raising=False)
    autoload.autoload()
    monkeypatch.setenv(autoload.VARIABLE, "1")
    with pytest.warns(UserWarning, match="torch works without it"):
        autoload.autoload()


def test_the_document_says_of_each_family_how_long_a_launch_takes() -> None:
    document = (Path(catalog.__file__).parents[2] / "docs" / "kernels.md").read_text("utf-8")
    section = document.partition("## How long a launch takes")[2].partition("\n## ")[0]
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(catalog.families())
