from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.audit.releases.surface.native_functions import installed_release
from mpsmith.audit.self_test.compiled.faults import GeneratorFault, faulty, installed_generator
from mpsmith.audit.self_test.compiled.table import FAULTS
from mpsmith.errors import MpsmithError

FAULT = GeneratorFault("a test", "none", "min", "max", ())


def test_a_fault_changes_the_one_line_that_it_names() -> None:
    assert faulty(FAULT, "a min b") == "a max b"


@pytest.mark.parametrize("source", ["a max b", "min min"])
def test_rejects_a_line_that_does_not_occur_once(source: str) -> None:
    message = rf"^the line of the fault 'a test' is {source.count('min')} times in the installed code generator"
    with pytest.raises(MpsmithError, match=message):
        faulty(FAULT, source)


def test_there_are_twenty_faults_of_many_kinds() -> None:
    assert len(FAULTS) >= 20
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert len({fault.kind for fault in FAULTS}) >= 6
    assert all(fault.shown_by for fault in FAULTS)


@pytest.mark.skipif(not installed_release().startswith("2.13."), reason="the lines are those of torch 2.13")
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_every_fault_has_its_place_in_the_installed_generator(fault: GeneratorFault) -> None:
    source = installed_generator().read_text("utf-8")
    changed = faulty(fault, source)
    assert changed != source
    compile(changed, "mps.py", "exec")


def test_rejects_a_torch_without_the_generator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: _Spec(str(tmp_path / "torch" / "__init__.py")))
    with pytest.raises(MpsmithError, match="the installed torch generates no Metal"):
        installed_generator()


class _Spec:
    def __init__(self, origin: str) -> None:
        self.origin = origin
