"""The way of a Mac, with the simulated device posing as a real one: the results are thrown away.

Nothing here says what a Mac would compute. It says that the code which only runs there runs: the recorder of warnings,
timing, evidence, traces, tests/mps and the commands of CI's macOS job. All but the first test take long: ask for them
with `pytest tests/simulated/reports/evidence -m rehearsal`.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from mpsmith.audit.model.verdicts import CaseVerdict
from mpsmith.audit.store.records import ModuleStatus
from mpsmith.audit.store.store import Store
from mpsmith.kernels.runtime import catalog
from mpsmith.registry.files import load
from mpsmith.registry.model import Status
from mpsmith.reports.evidence.checking import checked
from support.json_document import documented
from support.mac import PosedMac

ROOT = Path(__file__).parents[4]
FAMILY, OPERATOR = "heaviside", "aten::heaviside"
ONE = ("--workers", "1")
# So many processes verify all families, a share of them each.
PARTS = 8
# Families whose operators are native in the pinned torch, have no CPU kernel there, or come with torchvision.
WITHOUT_CASES = {"shrink", "stateless_random"} | ({"deform_conv2d"} if find_spec("torchvision") is None else set())
# Of a command that hangs; how long one may compute is limited in seconds of the processor.
pytestmark = pytest.mark.timeout(3 * 3600)
NARROW = ("--ops", FAMILY, "--dtypes", "float32", "--sources", "opinfo", *ONE)


@pytest.fixture
def mac(tmp_path: Path) -> PosedMac:
    return PosedMac.made(tmp_path)


def test_evidence_is_collected_checked_and_added_as_on_a_mac(mac: PosedMac) -> None:
    printed = mac.run("mpsmith", "evidence", "collect", *NARROW)
    assert "real device" in printed
    assert "SIMULATED" not in printed
    evidence = checked(mac.folder / "evidence.json.gz")
    machine = evidence.machine
    assert (machine.chip, machine.gpu_cores, machine.memory_gib, machine.release) == ("Apple M3 Pro", 18, 36, "15.5")
    assert evidence.preflight is not None
    assert evidence.preflight.steps["fallback"] == "that of aten::special_airy_ai.out was seen"
    # Warnings told which operator fell back: the simulated device's own counters were not asked.
    assert set(evidence.audit.cases) <= {CaseVerdict.FALLBACK, CaseVerdict.MISSING, CaseVerdict.SKIPPED}
    assert evidence.audit.cases[CaseVerdict.FALLBACK] > 0
    (row,) = evidence.kernels
    assert row.passed, row.failures
    assert row.operators == [OPERATOR]
    assert row.timing is not None, row.untimed
    assert (row.timing.kernel or 0) > 0
    mac.run("mpsmith", "evidence", "add", "evidence.json.gz")
    entry = load(mac.folder / "registry")[OPERATOR]
    assert entry.status is Status.verified
    assert entry.measured["mps"].verdict == "missing"


@pytest.mark.rehearsal
def test_known_reports_come_first(mac: PosedMac) -> None:
    mac.run("mpsmith", "audit", "--sources", "known wrong,opinfo", "--ops", "abs", "--dtypes", "complex64", *ONE)
    with Store.open(mac.folder / "audit.sqlite") as store:
        sources = [group.key.source for group in store.groups(store.latest_run().id)]
    assert {"known wrong", "opinfo"} <= set(sources)
    assert sources.index("opinfo") >= sources.count("known wrong")


@pytest.mark.rehearsal
def test_calls_that_may_write_out_of_bounds_run_in_separate_processes(mac: PosedMac) -> None:
    mac.run("mpsmith", "audit", "--sources", "errors,opinfo", "--ops", "take", *NARROW[2:4], "--samples", "quick", *ONE)
    with Store.open(mac.folder / "audit.sqlite") as store:
        cases = list(store.cases(store.latest_run().id))
    assert {case.group.source for case in cases} == {"opinfo", "errors"}
    assert CaseVerdict.CRASH not in {case.outcome.verdict for case in cases}


@pytest.mark.rehearsal
def test_a_compiled_audit_is_of_the_real_device(mac: PosedMac) -> None:
    printed = mac.run("mpsmith", "audit", "--compile", "--ops", "cumsum", *NARROW[2:4], "--samples", "quick")
    assert "15 cases executed" in printed
    assert "undefined lanes" not in printed
    assert "SIMULATED" not in printed


@pytest.mark.rehearsal
def test_a_case_is_replayed_and_large_tensors_are_tried(mac: PosedMac) -> None:
    mac.run("mpsmith", "audit", "--large", "--ops", FAMILY, "--dtypes", "float32", "--samples", "quick")
    with Store.open(mac.folder / "audit.sqlite") as store:
        assert not store.latest_run().simulated
    assert "now:      fallback" in mac.run("mpsmith", "replay", "opinfo:heaviside:float32:0")


SOURCE = """
from mpsmith.audit.model.case import Case, CaseSource
from mpsmith.audit.model.group import GroupKey

class OneGroup(CaseSource):
    name = "one group"

    def groups(self):
        return [GroupKey(self.name, "abs", "", "float32", "fallback")]

    def cases(self, key, samples):
        import torch

        yield Case(torch.abs, (torch.ones(3),))

mpsmith_case_sources = [OneGroup()]
"""


@pytest.mark.rehearsal
def test_torch_mps_is_probed(mac: PosedMac) -> None:
    (mac.folder / "one_group.py").write_text(SOURCE)
    mac.run("mpsmith", "audit", "--import", "one_group", "--sources", "one group", *ONE)
    with Store.open(mac.folder / "audit.sqlite") as store:
        run = store.latest_run()
        rows = {row.name: row.status for row in store.module_rows(run.id)}
    assert not run.simulated
    for works in ("torch.mps.synchronize", "torch.mps.compile_shader", "torch.mps.manual_seed", "torch.mps.Event"):
        assert rows[works] is ModuleStatus.WORKS
    # This build of torch lacks some names of a Mac's.
    assert list(rows.values()).count(ModuleStatus.WORKS) > len(rows) / 2


@pytest.mark.rehearsal
def test_an_audit_with_and_without_kernels_compares_them(mac: PosedMac) -> None:
    mac.run("mpsmith", "kernels", "verify", FAMILY)  # what is finished is registered
    printed = mac.run("mpsmith", "audit", "--with-kernels", "--json", *NARROW)
    (change,) = documented("audit --with-kernels", printed)["changes"]
    assert change["operator"] == FAMILY
    assert "passed" not in change["before"]
    assert list(change["after"]) == ["passed"]


NETWORK = """
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        return torch.heaviside(x, x)

def net():
    return Net(), (torch.rand(4),)
"""


@pytest.mark.rehearsal
def test_a_network_runs(mac: PosedMac) -> None:
    (mac.folder / "my_net.py").write_text(NETWORK)
    printed = mac.run("mpsmith", "networks", "my_net:net", "--modes", "inference,compile", "--json", *ONE)
    answer = documented("networks", printed)
    assert answer["simulated"] is False
    assert [(run["mode"], run["outcome"]) for run in answer["runs"]] == [("inference", "ran"), ("torch.compile", "ran")]
    assert answer["runs"][0]["called"]["fell_back"] == {f"{OPERATOR}.out": 1}
    assert answer["runs"][1]["generated"] == 1


def run_tests_of_a_mac(mac: PosedMac, chosen: str) -> str:
    """What `make test-mps` prints of some tests."""
    here = f"--rootdir={ROOT}", f"--config-file={ROOT / 'pyproject.toml'}"
    options = ("-q", "-p", "no:cacheprovider", "-o", "timeout=0", *here)
    return mac.run("pytest", *options, str(ROOT / "tests" / "mps"), "-k", chosen, seconds=3000)


@pytest.mark.rehearsal
def test_the_tests_of_a_mac(mac: PosedMac) -> None:
    """Without what only the simulator registers."""
    assert "3 passed" in run_tests_of_a_mac(mac, "test_audit_on_mps and not surface_agrees")


@pytest.mark.rehearsal
@pytest.mark.parametrize("part", range(PARTS))
def test_each_family_on_a_mac(part: int, mac: PosedMac) -> None:
    families = catalog.families()[part::PARTS]
    chosen = " or ".join(f"test_values_and_gradients_in_every_layout[{family}]" for family in families)
    tried = [family for family in families if family not in WITHOUT_CASES]
    assert f"{len(tried)} passed" in run_tests_of_a_mac(mac, chosen)


@pytest.mark.rehearsal
def test_the_audit_of_a_mac(mac: PosedMac) -> None:
    """`make audit AUDIT_ARGS="--shipped auto --samples quick"`, of one operator."""
    mac.run("mpsmith", "audit", "--sync", "--report", "--shipped", "auto", "--samples", "quick", *NARROW)
    with Store.open(mac.folder / "audit.sqlite") as store:
        run = store.latest_run()
        cases = [case.outcome for case in store.cases(run.id)]
        modes = {group.key.mode for group in store.groups(run.id)}
    assert not run.simulated
    assert modes == {"fallback", "strict"}
    assert {name for outcome in cases for name in outcome.fallbacks} == {f"{OPERATOR}.out"}
    assert load(mac.folder / "registry")[OPERATOR].measured["mps"].verdict == "missing"
    page = (mac.folder / "reports" / "published" / "operators" / "heaviside.html").read_text()
    assert "SIMULATED" not in page


@pytest.mark.rehearsal
def test_kernels_are_verified_and_timed(mac: PosedMac) -> None:
    mac.run("mpsmith", "kernels", "verify", FAMILY)
    entry = load(mac.folder / "registry")[OPERATOR]
    assert (entry.status, list(entry.evidence)) == (Status.verified, ["mps"])
    timed = json.loads(mac.run("mpsmith", "kernels", "bench", FAMILY, "--elements", "1024", "--json"))
    assert "SIMULATED" not in str(timed)


PROGRAM = """
import torch
x = torch.rand(9, device="mps")
for _ in range(3):
    torch.heaviside(x, x)
"""


@pytest.mark.rehearsal
def test_a_program_is_traced(mac: PosedMac) -> None:
    (mac.folder / "program.py").write_text(PROGRAM)
    trace = documented("trace", mac.run("mpsmith", "trace", "--json", "program.py"))
    assert trace["simulated"] is False
    (fallback,) = trace["fallbacks"]
    assert (fallback["overload"], fallback["calls"], fallback["line"]) == ("aten::heaviside.out", 3, 5)


@pytest.mark.rehearsal
def test_doctor_sees_the_real_device(mac: PosedMac) -> None:
    assert "not needed: this machine has the real one" in mac.run("mpsmith", "doctor")
