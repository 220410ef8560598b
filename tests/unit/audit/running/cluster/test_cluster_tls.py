"""TLS on a cluster, as docs/cluster.md has it word for word: its certificates, its arguments, its variables."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import dask.config
import pytest

from mpsmith.audit.model.selection import Settings
from mpsmith.audit.running.cluster.auditing import audit_on_cluster
from mpsmith.audit.running.cluster.connection import Connection
from mpsmith.audit.running.cluster.messages import ClusterError
from mpsmith.audit.running.runner import run_audit
from mpsmith.simulator.opening import DeviceKind
from support.dask_processes import DaskProcesses, Encryption
from support.fake_machines import contents, fake_execution

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates, and is absent")

SETTINGS = Settings(device=DeviceKind.SIMULATED)
DOCUMENT = Path(__file__).parents[5] / "docs/cluster.md"
CONSOLES = re.findall(r"^```console\n(.*?)^```", DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def typed(part: str) -> list[str]:
    """The lines that a reader types of the document's one console that has a text in it."""
    (console,) = [console for console in CONSOLES if part in console]
    return [line[2:] for line in console.splitlines()]


def arguments(program: str) -> list[str]:
    """What TLS adds to a command line of the document: everything from the first such option on."""
    (line,) = [line for line in typed("--tls-ca-file") if line.startswith(program)]
    words = shlex.split(line)
    return words[words.index("--tls-ca-file") :]


def exported() -> dict[str, str]:
    """The variables that the document exports."""
    lines = [line for line in typed("--tls-ca-file") if line.startswith("export ")]
    return dict(word.split("=", 1) for line in lines for word in shlex.split(line)[1:])


def certified(folder: Path) -> Path:
    """The folder with a new authority and the certificates that the document makes."""
    folder.mkdir()
    subprocess.run(["bash", "-ec", "\n".join(typed("openssl"))], cwd=folder, capture_output=True, check=True)
    return folder


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certified(tmp_path_factory.mktemp("tls") / "ours")


@pytest.fixture
def dask_with_tls(tmp_path: Path, certificates: Path) -> Iterator[DaskProcesses]:
    encryption = Encryption(certificates, arguments("dask scheduler"), arguments("dask worker"))
    with DaskProcesses(tmp_path, encryption) as processes:
        yield processes


def configure(monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str]) -> None:
    """Let Dask's configuration be what it would be with these variables in the environment."""
    config = dask.config.merge(dask.config.global_config, dask.config.collect_env(variables))
    monkeypatch.setattr(dask.config, "global_config", config)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, certificates: Path) -> None:
    """This process is where the document's variables are exported, in the folder with the certificates."""
    monkeypatch.chdir(certificates)
    configure(monkeypatch, exported())


def test_audits_over_tls(dask_with_tls: DaskProcesses, shown: None, tmp_path: Path) -> None:
    for name in ("one", "two"):
        dask_with_tls.start(name)
    dask_with_tls.wait(2)
    run_audit(SETTINGS, tmp_path / "here.sqlite", resume=False, say=print, execution=fake_execution)
    path = tmp_path / "there.sqlite"
    audit_on_cluster(SETTINGS, path, dask_with_tls.address, resume=False, say=print)
    assert contents(path) == contents(tmp_path / "here.sqlite")


def test_refuses_certificates_of_another_authority(
    dask_with_tls: DaskProcesses, shown: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Connection(dask_with_tls.address) as line:  # the scheduler is there
        assert line.workers() == {}
    monkeypatch.chdir(certified(tmp_path / "others"))
    with pytest.raises(ClusterError, match=r"^tls://.*: TLS certificate does not match.*docs/cluster\.md"):
        Connection(dask_with_tls.address)
    with pytest.raises(ClusterError, match="no Dask scheduler at tcp://"):
        Connection(dask_with_tls.address.replace("tls://", "tcp://"), timeout=0.5)


@pytest.mark.parametrize("name", ["ca.pem", "me-key.pem"])
def test_names_missing_and_damaged_certificate_files(
    name: str, shown: None, certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in exported().values():
        shutil.copy(certificates / each, tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(ClusterError, match=rf"cannot be used: .*\(of .*{re.escape(name)}.*; docs/cluster\.md"):
        Connection("tls://127.0.0.1:9")
    (tmp_path / name).write_text("no certificate")
    with pytest.raises(ClusterError, match=r"cannot be used: .*docs/cluster\.md"):
        Connection("tls://127.0.0.1:9")


@pytest.mark.parametrize("left_out", [*exported(), "all"])
def test_requires_a_named_certificate(left_out: str, certificates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(certificates)
    named = {name: value for name, value in exported().items() if left_out not in (name, "all")}
    configure(monkeypatch, named)
    with pytest.raises(ClusterError, match="certificate"):
        Connection("tls://127.0.0.1:9")


def test_certificates_pass_strict_verification(certificates: Path) -> None:
    """From 3.13 on, Python verifies as strictly as this option says."""
    checked = ["openssl", "verify", "-x509_strict", "-CAfile", "ca.pem", "scheduler.pem", "worker.pem", "me.pem"]
    done = subprocess.run(checked, cwd=certificates, capture_output=True, text=True, check=False)
    assert done.stdout.count(": OK") == 3, done.stderr
