"""What pyproject.toml claims to support is what CI runs, and nothing in CI or in a hook moves by itself."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
HOOKS = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
PINNED_BY_COMMIT = re.compile(r"[0-9a-f]{40}")


@pytest.fixture(scope="module")
def project() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def jobs() -> Any:
    return yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]


def rows(job: Any) -> list[dict[str, str]]:
    included: list[dict[str, str]] = job["strategy"]["matrix"]["include"]
    return included


def claimed_pythons(project: Any) -> list[str]:
    prefix = "Programming Language :: Python :: "
    return [line.removeprefix(prefix) for line in project["classifiers"] if line.startswith(prefix)]


def oldest_torch(project: Any) -> str:
    (requirement,) = (line for line in project["dependencies"] if line.startswith("torch"))
    return str(requirement.removeprefix("torch>="))


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = (line.partition(";")[0] for line in lines if line and not line.startswith("#"))
    return dict(pin.split("==") for pin in pins)


def test_every_python_that_is_claimed_runs_with_the_pinned_torch(project: Any, jobs: Any) -> None:
    pinned = f"=={constraints()['torch']}"
    ran = [row["python"] for row in rows(jobs["linux"]) if row["torch"] == pinned]
    assert ran == claimed_pythons(project)
    assert project["requires-python"] == f">={ran[0]}"


@pytest.mark.parametrize("platform", ["linux", "macos"])
def test_the_oldest_the_pinned_and_the_newest_torch_run(platform: str, project: Any, jobs: Any) -> None:
    ran = {row["torch"] for row in rows(jobs[platform])}
    pinned = constraints()["torch"]
    newest = ">=" + ".".join(pinned.split(".")[:2])
    assert {f"=={oldest_torch(project)}.*", f"=={pinned}", newest} <= ran
    assert {row["python"] for row in rows(jobs[platform])} <= set(claimed_pythons(project))


def test_a_release_is_tried_on_every_python_that_is_claimed(project: Any) -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]
    matrix = jobs["try"]["strategy"]["matrix"]
    assert matrix["python"] == claimed_pythons(project)
    assert jobs["try-on-a-mac"]["strategy"]["matrix"] == matrix
    assert jobs["try-on-a-mac"]["steps"] == jobs["try"]["steps"]


# GitHub retires an image about once a year; a job on a retired image never starts.
RETIRED = {"macos-12", "macos-13", "macos-14"}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_no_job_runs_on_a_retired_image(workflow: Path) -> None:
    images = {job["runs-on"] for job in yaml.safe_load(workflow.read_text())["jobs"].values()}
    assert images
    assert not images & RETIRED


def test_a_release_is_published_from_a_tag_alone_without_a_token() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]
    publish = jobs["publish"]
    assert publish["if"] == "github.ref_type == 'tag'"
    # GitHub's Macs have no mps device that is supported, and may not start: no release waits for them.
    assert set(publish["needs"]) == {"build", "try"}
    assert publish["permissions"] == {"id-token": "write"}
    assert "secrets." not in (ROOT / ".github" / "workflows" / "release.yml").read_text()
    assert [name for name, job in jobs.items() if "permissions" in job] == ["publish"]


def uses(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for name, value in node.items():
            if name == "uses":
                yield value
            else:
                yield from uses(value)
    elif isinstance(node, list):
        for item in node:
            yield from uses(item)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit_with_their_version_beside_it(workflow: Path) -> None:
    text = workflow.read_text()
    actions = list(uses(yaml.safe_load(text)))
    assert actions
    for action in actions:
        assert PINNED_BY_COMMIT.fullmatch(action.partition("@")[2]), action
        assert re.search(rf"{re.escape(action)} # v\d+\.\d+\.\d+$", text, re.MULTILINE), action


@pytest.mark.parametrize("repository", HOOKS, ids=lambda repository: repository["repo"])
def test_hooks_are_pinned(repository: Any) -> None:
    if repository["repo"] != "local":
        assert PINNED_BY_COMMIT.fullmatch(repository["rev"])
        return
    for hook in repository["hooks"]:
        for package in hook.get("additional_dependencies", ()):
            assert re.search(r"[@=]\d+\.\d+\.\d+$", package), package


def test_the_tools_of_lint_and_hooks_are_pinned(project: Any) -> None:
    tools = re.findall(r"\.venv/bin/([\w-]+)", (ROOT / ".pre-commit-config.yaml").read_text())
    assert {*tools, "mypy"} <= set(constraints())
    extras = project["optional-dependencies"]
    stated = (*project["dependencies"], *extras["dev"], *extras["networks"], *extras["cluster"])
    wanted = {re.split(r"[<>=]", line)[0] for line in stated}
    assert set(constraints()) <= wanted


@pytest.mark.network
@pytest.mark.parametrize("system", ["aarch64-apple-darwin", "x86_64-manylinux_2_28", "aarch64-manylinux_2_28"])
def test_the_pins_can_be_installed_on_every_python_that_is_claimed(system: str, project: Any) -> None:
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.exists() else shutil.which("uv")
    if uv is None:
        pytest.skip("needs uv, which `pip install -e '.[dev]'` installs")
    environment = {**os.environ, "MACOSX_DEPLOYMENT_TARGET": "14.0"}  # what torch's wheels for Macs are built for
    for python in claimed_pythons(project):
        command = [uv, "pip", "compile", "--quiet", "--no-annotate", "--extra", "dev", "pyproject.toml"]
        command += ["--constraint", "constraints.txt", "--python-version", python, "--python-platform", system]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"Python {python} on {system}: {done.stderr}"
        assert f"\ntorch=={constraints()['torch']}\n" in done.stdout


def test_make_reads_the_pin_of_torch_alone() -> None:
    command = ["make", "--dry-run", "--always-make", "setup"]
    recipe = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    pin = constraints()["torch"]
    assert f"sed 's/^torch==.*/torch=={pin}/' constraints.txt" in recipe


def test_make_refuses_a_python_that_is_too_old(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text(f"#!{sys.executable}\nimport sys\nsys.version_info = (3, 9, 6)\nexec(sys.argv[2])\n")
    old.chmod(0o755)
    command = ["make", "setup", f"PYTHON={old}", f"VENV={tmp_path}/venv"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert done.stderr.startswith(f"error: {old} is Python 3.9, mpsmith needs 3.10 or newer")
    assert not (tmp_path / "venv").exists()
