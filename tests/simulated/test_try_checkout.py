"""`mpsmith try` on small checkouts: what becomes of their files and tests, and what bad input becomes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import Queue

import pytest

from mpsmith.audit.running.host_code import build_host_code, prepare_host_code
from mpsmith.cli import app
from mpsmith.scaffold.building.setup_script import requests_of
from mpsmith.scaffold.checkout.results import TryPlan, TryResult, TryRow, passed
from mpsmith.scaffold.checkout.trying import try_checkout
from mpsmith.scaffold.errors import ScaffoldError
from support.commands import refusal, typed

SHADER = """\
#include <metal_stdlib>
using namespace metal;
kernel void twice(device float* x [[buffer(0)]], constant uint& shift [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
  x[i + shift] *= 2.0f;
}
"""
TESTS = """\
import os, platform, subprocess, sys
from pathlib import Path
import pytest
import torch

KERNEL = torch.mps.compile_shader(Path("twice.metal").read_text())

def twice(shift, factor):
    x = torch.arange(100, dtype=torch.float32, device="mps")
    KERNEL.twice(x, shift)
    torch.testing.assert_close(x.cpu(), torch.arange(100.0) * factor)

def test_right():
    twice(0, 2)

def test_wrong():
    twice(0, 3)

def test_defect():
    twice(7, 2)

def test_mac():
    assert (sys.platform, platform.system(), platform.machine()) == ("darwin", "Darwin", "arm64")
    from torch.testing._internal.common_utils import MACOS_VERSION
    assert MACOS_VERSION == 15.6
    assert int(subprocess.check_output(["sysctl", "-n", "hw.memsize"])) > 2**30
    assert subprocess.run(["sysctl", "-n", "hw.nothing"], stderr=subprocess.DEVNULL).returncode == 1

def test_needs_a_module():
    import no_such_module

def test_skipped():
    pytest.skip("no camera")

def test_metallib():
    torch.mps.load_metallib("default.metallib")

def test_died():
    os.write(2, b"Error: no head of 96\\n")
    os.abort()

@pytest.mark.xfail(reason="known")
def test_expected():
    assert False

@pytest.fixture
def broken_teardown():
    yield
    raise RuntimeError("teardown")

def test_teardown(broken_teardown):
    pass

def test_after():
    pass
"""


@pytest.fixture(autouse=True)
def own_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copies of checkouts are made in the test's folder; what was compiled stays in the cache."""
    monkeypatch.setattr("mpsmith.scaffold.checkout.trying.cache_folder", lambda: tmp_path / "cache")


def checkout(folder: Path, **files: str) -> Path:
    made = folder / "project"
    made.mkdir()
    for name, text in files.items():
        path = made / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return made


def test_each_file_and_test_has_its_result(tmp_path: Path) -> None:
    pytest.importorskip("ziglang")
    folder = checkout(
        tmp_path,
        twice_dot_metal=SHADER,
        broken_dot_metal=SHADER.replace("2.0f", "factor"),
        other_dot_metal="#include <factor.h>\n" + SHADER.replace("2.0f", "factor"),
        include__factor_dot_h="constant float factor = 2.0f;\n",
        tests__test_kernels_dot_py=TESTS,
        tests__test_broken_dot_py="import torch\ndef test_one(:\n",
    )
    before = sorted(folder.rglob("*"))
    listed = list(try_checkout(folder, 120))
    rows = {row.name.rpartition("::")[2]: row for row in listed}
    assert sorted(folder.rglob("*")) == before
    assert {name: row.result.value for name, row in rows.items()} == {
        "twice.metal": "accepted",
        "broken.metal": "defect of the project",
        "other.metal": "accepted",
        "tests/test_broken.py": "wrong",
        "test_right": "right",
        "test_wrong": "wrong",
        "test_defect": "defect of the project",
        "test_mac": "right",
        "test_needs_a_module": "skipped",
        "test_skipped": "skipped",
        "test_metallib": "defect of the project",
        "test_died": "wrong",
        "test_expected": "skipped",
        "test_teardown": "wrong",
        "test_after": "right",
    }
    assert len(rows) == len(listed)
    assert (rows["broken.metal"].file, rows["broken.metal"].line) == ("broken.metal", 5)
    assert "out of bounds" in rows["test_defect"].reason
    assert rows["test_defect"].line == 5
    assert rows["test_died"].reason == "the process died of SIGABRT: Error: no head of 96"
    assert rows["test_needs_a_module"].reason == "it needs the module no_such_module: install it"
    assert rows["test_skipped"].reason == "no camera"
    assert "default.metallib: No such file" in rows["test_metallib"].reason
    assert not passed(list(rows.values()))


SCRIPT = """\
import sys
import torch

def test_of_dtype(dtype, name="one"):
    return bool((torch.ones(2, device="mps", dtype=dtype) == 1).all())

def test_that_is_false():
    print("largest error: 0.5\\n----")
    return False

def test_right():
    return True

if __name__ == "__main__":
    fine = test_of_dtype(torch.float32) & test_of_dtype(torch.float16, name="two")
    fine &= test_that_is_false()
    print("fine" if fine else "not fine")
    sys.exit(0)
"""


def test_a_test_file_that_is_a_script_runs_as_one(tmp_path: Path) -> None:
    ends_badly = "import torch, sys\nif __name__ == '__main__':\n    torch.mps.synchronize()\n    sys.exit(3)\n"
    folder = checkout(tmp_path, tests__test_script_dot_py=SCRIPT, tests__test_bad_dot_py=ends_badly)
    rows = {row.name.removeprefix("tests/"): row for row in try_checkout(folder, 60)}
    assert {name: row.result.value for name, row in rows.items()} == {
        "test_bad.py::__main__": "wrong",
        "test_script.py::test_of_dtype": "skipped",
        "test_script.py::test_that_is_false": "wrong",
        "test_script.py::test_right": "right",
        "test_script.py::test_of_dtype(torch.float32)": "right",
        "test_script.py::test_of_dtype(torch.float16, name='two')": "right",
        "test_script.py::test_that_is_false()": "wrong",
        "test_script.py::__main__": "right",
    }
    assert rows["test_bad.py::__main__"].reason == "RuntimeError: the script ended with status 3"
    assert rows["test_script.py::test_that_is_false()"].reason == "the test returned False"
    alone = rows["test_script.py::test_that_is_false"].reason
    assert alone == "the test returned False; its last line: largest error: 0.5"
    assert rows["test_script.py::test_of_dtype"].reason == "pytest cannot pass its arguments; the file's script does"


def test_a_test_that_hangs_costs_itself_alone(tmp_path: Path) -> None:
    tests = "import time\nimport torch\ndef test_hang(): time.sleep(3600)\ndef test_mps(): pass\n"
    rows = list(try_checkout(checkout(tmp_path, test_dot_py=tests + "# mps\n"), 10))
    assert [(row.name, row.result, row.reason) for row in rows] == [
        ("test.py::test_hang", TryResult.WRONG, "it did not end within 10 s"),
        ("test.py::test_mps", TryResult.RIGHT, ""),
    ]


def test_the_second_of_two_says_that_it_waits(tmp_path: Path) -> None:
    folder = checkout(tmp_path, a_dot_py="# mps\n")
    said: Queue[str] = Queue()
    first = try_checkout(folder, 60)
    next(first)
    with ThreadPoolExecutor() as pool:
        second = pool.submit(lambda: list(try_checkout(folder, 60, said.put)))
        assert said.get() == f"waiting: another mpsmith try of {folder} is running"
        del first  # it ends
        assert [row.name for row in second.result()] == ["tests"]


def test_only_the_chosen_tests_run(tmp_path: Path) -> None:
    tests = "def test_one(): pass\ndef test_mps(): assert False  # mps\n"
    folder = checkout(tmp_path, test_dot_py=tests, test_never_dot_py=tests)
    rows = [(row.name, row.result) for row in try_checkout(folder, 60, chosen="test.py and not mps")]
    assert rows == [("test.py::test_one", TryResult.RIGHT)]
    assert [row.name for row in try_checkout(folder, 60, chosen="and")] == ["pytest"]


def test_the_tests_end_with_the_command(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    tests = f"""import os, pathlib, time  # mps
def test_mps():
    pathlib.Path({str(pid)!r}).write_text(str(os.getpid()))
    time.sleep(999)
"""
    command = [sys.executable, "-m", "mpsmith", "try", str(checkout(tmp_path, test_dot_py=tests))]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not (pid.is_file() and pid.read_text()):
            assert process.poll() is None
            time.sleep(0.1)
        process.terminate()
    while Path("/proc", pid.read_text()).exists():  # the timeout of a test ends it
        time.sleep(0.1)


@pytest.mark.parametrize("form", ["terminal", "json"])
def test_an_interrupt_prints_the_results_so_far(form: str, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    tests = f"""import pathlib, time  # mps
def test_right(): pass
def test_mps():
    pathlib.Path({str(begun)!r}).touch()
    time.sleep(999)
def test_left(): pass
"""
    folder = checkout(tmp_path, test_dot_py=tests, test_never_dot_py="def test(): pass  # mps\n")
    command = [sys.executable, "-m", "mpsmith", "try", str(folder), "--format", form]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not begun.exists():
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in said
    if form == "terminal":
        assert printed.splitlines() == [
            "test test.py: not run to its end, 2 left",
            "test test_never.py: not run to its end, 1 left",
            f"{folder}: not passed: 1 right, 3 not run. SIMULATED: nothing was run on a Mac.",
        ]
        return
    report = json.loads(printed)
    assert (report["passed"], report["counts"]) == (False, {"right": 1, "not run": 3})
    assert [(row["name"], row["result"]) for row in report["rows"]] == [
        ("test.py::test_right", "right"),
        ("test.py::test_mps", "not run"),
        ("test.py::test_left", "not run"),
        ("test_never.py::test", "not run"),
    ]


def test_validation_errors_alone_are_a_separate_row(tmp_path: Path) -> None:
    tests = """import os, pytest  # mps
@pytest.mark.parametrize("length", [24, 24, 40])
def test_mps(length):
    with open(os.environ["MPSMITH_METAL_FINDINGS"], "a") as findings:
        findings.write(f"needs a multiple of 16, not {length}\\n")
    if length == 40:
        os.abort()
"""
    rows = list(try_checkout(checkout(tmp_path, test_dot_py=tests), 60))
    refused = "Metal's validation refuses it: needs a multiple of 16, not"
    assert [(row.kind, row.result.value, row.reason) for row in rows] == [
        ("host", "defect of the project", f"{refused} 24"),
        ("test", "right", ""),
        ("test", "right", ""),
        ("host", "defect of the project", f"{refused} 40"),
        ("test", "wrong", "the process died of SIGABRT"),
    ]


def test_names_without_a_row_are_left() -> None:
    plan = TryPlan()
    plan.add("metal", ["a.metal", "b.metal"])
    plan.add("extension", ["setup.py"])
    plan.add("test", ["t.py", "u.py"])
    left = plan.left([TryRow("metal", "a.metal", TryResult.ACCEPTED)])
    assert [row.name for row in left] == ["b.metal", "setup.py", "t.py", "u.py"]
    plan.add("extension", ["_C"], instead="setup.py")
    plan.add_tests(["t.py::a", "t.py::b"])
    rows = [TryRow(kind, name, TryResult.RIGHT) for kind, name in (("extension", "_C"), ("test", "t.py::a"))]
    assert [row.name for row in plan.left(rows)] == ["a.metal", "b.metal", "t.py::b"]
    assert not passed([*rows, *plan.left(rows)])


def test_a_folder_that_cannot_be_tried_is_a_one_line_error(tmp_path: Path) -> None:
    refused = partial(refusal, app, "try")
    assert "there is no folder" in refused(str(tmp_path / "gone"))
    (tmp_path / "a.txt").write_text("")
    assert "is not a folder" in refused(str(tmp_path / "a.txt"))
    assert "nothing to try" in refused(str(checkout(tmp_path, a_dot_py="print(1)\n")))


def test_a_setup_script_that_fails_and_no_tests_are_rows(tmp_path: Path) -> None:
    folder = checkout(tmp_path, k_dot_mm="int x;\n", setup_dot_py="raise RuntimeError('no Xcode')\n")
    done = typed(app, "try", str(folder))
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "extension setup.py: defect of the project: setup.py fails: no Xcode"
    assert lines[1].startswith("test tests: skipped: no file test_*.py")
    assert lines[2].endswith("not passed: 1 defect of the project, 1 skipped. SIMULATED: nothing was run on a Mac.")


def test_setup_py_gets_the_answers_of_a_mac(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text(
        "import os, platform, sys\n"
        "from setuptools import Extension, setup\n"
        "import torch\n"
        "mac = sys.platform == 'darwin' and platform.machine() == 'arm64' and torch.backends.mps.is_available()\n"
        "mac = mac and (os.uname()[0], os.uname().machine) == ('Darwin', 'arm64')\n"
        "setup(ext_modules=[Extension('own.sub._C' if mac else 'other', ['a.mm'])], package_dir={'': 'python'})\n"
    )
    script = requests_of(tmp_path)
    assert [(made.name, made.place) for made in script.requests] == [("own.sub._C", tmp_path / "python/own/sub")]
    assert script.requests[0].options.arc is False, "clang's default"
    assert script.packages == tmp_path / "python"


def test_a_step_of_the_build_can_add_sources_and_write_beside_the_extension(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text(
        "from pathlib import Path\n"
        "from setuptools import Extension, setup\n"
        "from setuptools.command.build_ext import build_ext\n"
        "class Step(build_ext):\n"
        "    def build_extensions(self):\n"
        "        self.extensions[0].sources.append('more.cpp')\n"
        "        super().build_extensions()\n"
        "        Path(self.get_ext_fullpath('own._C')).with_name('kernels').write_text('')\n"
        "setup(ext_modules=[Extension('own._C', ['a.mm'])], cmdclass={'build_ext': Step})\n"
    )
    script = requests_of(tmp_path)
    assert script.problem == ""
    assert [path.name for path in script.requests[0].sources] == ["a.mm", "more.cpp"]
    assert (tmp_path / "own" / "kernels").is_file()


NOARCH = '[general]\nname = "my-twice"\nhub = { repo-id = "someone/my-twice" }\n[torch-noarch]\n'
TWICE = f"""\
import torch
KERNEL = torch.mps.compile_shader({SHADER!r})

def twice(x):
    KERNEL.twice(x, 0)
    return x
"""
GETS = """\
import kernels
import torch

def test_the_kernel_of_the_folder():
    kernel = kernels.get_kernel("someone/my-twice", version=1)
    assert kernel.twice(torch.ones(3, device="mps")).tolist() == [2, 2, 2]

def test_another_kernel():
    kernels.get_kernel("someone/other")
"""


def test_a_folder_of_kernel_builder_gives_its_tests_the_kernel(tmp_path: Path) -> None:
    pytest.importorskip("ziglang")
    folder = checkout(tmp_path, build_dot_toml=NOARCH, tests__test_it_dot_py=GETS + "# mps\n")
    package = folder / "torch-ext" / "my_twice"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(TWICE)
    rows = {row.name.rpartition("::")[2]: (row.result.value, row.reason) for row in try_checkout(folder, 120)}
    assert rows == {
        "test_the_kernel_of_the_folder": ("right", ""),
        "test_another_kernel": ("skipped", "it needs the module kernels: install it"),
    }


@pytest.mark.network  # Apple's declarations are fetched: mpsmith check --setup
def test_the_code_of_a_project_is_compiled_for_a_mac(tmp_path: Path) -> None:
    for_a_mac = "#if !defined(__APPLE__) || defined(__linux__)\n#error no Mac\n#endif\n"
    script = f"open('x.h', 'w').write({for_a_mac!r})\nfrom setuptools import Extension, setup\n"
    script += "setup(name='x', ext_modules=[Extension('x', ['x.mm'])])\n"
    source = for_a_mac + '#include "x.h"\n#include <c10/core/SymInt.h>\n'
    folder = checkout(tmp_path, setup_dot_py=script, x_dot_mm=source)
    assert next((row.result.value, row.reason) for row in try_checkout(folder, 60)) == ("accepted", "")


def test_a_build_script_below_the_folder_is_named(tmp_path: Path) -> None:
    folder = checkout(tmp_path, k_dot_mm="int x;\n", deeper__setup_dot_py="")
    assert next(row.reason for row in try_checkout(folder, 60)) == "there is none: try deeper, which has one"


@pytest.mark.parametrize("hanging", ["__import__('time').sleep(3600)", "while True: pass"])
def test_a_setup_script_that_hangs_is_one_line(tmp_path: Path, hanging: str) -> None:
    (tmp_path / "setup.py").write_text(hanging)
    with pytest.raises(ScaffoldError, match=r"setup\.py runs longer than 1 s without calling setup"):
        requests_of(tmp_path, 1)


def test_nothing_executed_is_not_a_pass() -> None:
    right, accepted = TryRow("test", "a", TryResult.RIGHT), TryRow("metal", "a", TryResult.ACCEPTED)
    skipped = TryRow("test", "b", TryResult.SKIPPED)
    assert passed([accepted, right, skipped])
    assert not passed([accepted])
    assert not passed([accepted, skipped])
    assert not passed([])
    for failure in (TryResult.WRONG, TryResult.DEFECT, TryResult.REFUSED):
        assert not passed([right, TryRow("test", "c", failure)])


def test_host_code_that_is_gone(tmp_path: Path) -> None:
    folder = checkout(tmp_path, test_dot_py="def test_mps(): pass  # mps\n")
    (row,) = try_checkout(folder, 60, host_code=tmp_path / "gone")
    assert row.result is TryResult.WRONG
    assert f"the build of host code in {tmp_path / 'gone'} is gone" in row.reason


@pytest.mark.network
def test_host_code_of_a_wheel_computes(tmp_path: Path) -> None:
    built, _ = prepare_host_code("2.13.0", print)
    tests = "import torch\nfrom mpsmith.simulator.objc.bridge import launches\ndef test_mps():\n"
    tests += '    torch.ones(3, device="mps").add(1)\n    assert launches() > 0\n'
    folder = checkout(tmp_path, test_dot_py=tests)
    assert [row.result for row in try_checkout(folder, 120, host_code=built)] == [TryResult.RIGHT]
    assert [row.result for row in try_checkout(folder, 120)] == [TryResult.WRONG]


OF_SOURCE = """\
import torch
def test_mps_copies_nothing_into_no_elements():
    x = torch.zeros(4, 0, 5, device="mps")
    assert x.copy_(torch.ones(4, 1, 5, device="mps")).shape == (4, 0, 5)
def test_mps_generators():
    own = torch.Generator("mps")
    for generator in (own, torch.mps._get_default_mps_generator()):
        generator.manual_seed(9)
        first = torch.randn(5, device="mps", generator=generator)
        state = generator.get_state()
        second = torch.randn(5, device="mps", generator=generator)
        assert generator.get_offset() == 2 and not second.equal(first)
        generator.set_state(state)
        assert torch.randn(5, device="mps", generator=generator).equal(second)
    torch.manual_seed(9)
    assert torch.randn(5, device="mps").equal(first)
"""


@pytest.mark.network
def test_host_code_of_a_releases_source_computes(tmp_path: Path) -> None:
    built, _ = build_host_code("2.6.0", print)
    rows = list(try_checkout(checkout(tmp_path, test_dot_py=OF_SOURCE), 120, host_code=built))
    assert [(row.result, row.reason) for row in rows] == [(TryResult.RIGHT, "")] * 2
