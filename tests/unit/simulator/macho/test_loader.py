"""Libraries for macOS in a process of Linux: every name the loader offers, called by a program compiled for macOS."""

import struct
import subprocess
from pathlib import Path

import pytest

from mpsmith.simulator.errors import MachOError
from mpsmith.simulator.macho import arm64_command, building
from mpsmith.simulator.macho.process import command

CHECKS = Path(__file__).with_name("shim_checks.c")
# What ends the process is called last, by its own test.
ENDINGS = {"abort": 98, "exit": 7, "_exit": 8, "__stack_chk_fail": 97, "unknown": 99}


def run(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = [*command([path]), "check_shims", *arguments]
    return subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def arm64() -> None:
    try:
        arm64_command()
    except MachOError as error:
        pytest.skip(str(error))


def library_with_fixups(imports: int = 1, names: int = 0, pointers: int = 6) -> bytes:
    """A library without code whose chained fixups have these formats."""
    starts = struct.pack("<3I", 2, 12, 0) + struct.pack("<IHHQIHH", 24, 0x4000, pointers, 0, 0, 1, 0xFFFF)
    fixups = struct.pack("<7I", 0, 28, 28 + len(starts), 28 + len(starts), 0, imports, names) + starts + bytes(8)
    segments = [
        struct.pack("<2I16s4Q4I", 0x19, 72, name, address, 0x4000, address, size, 1, 1, 0, 0)
        for name, address, size in ((b"__TEXT", 0, 0x4000), (b"__LINKEDIT", 0x4000, len(fixups)))
    ]
    commands = b"".join(segments) + struct.pack("<4I", 0x80000034, 16, 0x4000, len(fixups))
    header = struct.pack("<8I", 0xFEEDFACF, 0x0100000C, 0, 6, 3, len(commands), 0, 0)
    return (header + commands).ljust(0x4000, b"\0") + fixups


@pytest.fixture(scope="session")
def checks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        arm64_command()
    except MachOError as error:
        pytest.skip(str(error))
    library = tmp_path_factory.mktemp("macho") / "checks.dylib"
    building.compile_c(CHECKS, library)
    return library


def test_an_archive_of_apples_form_is_read() -> None:
    name = b"long name of an object.o"
    body = b"\xcf\xfa\xed\xfe" + b"content"
    header = f"{f'#1/{len(name)}':16}{0:<12}{0:<6}{0:<6}{'644':8}{len(name) + len(body):<10}`\n".encode()
    index = f"{'#1/4':16}{0:<12}{0:<6}{0:<6}{'644':8}{8:<10}`\n".encode() + b"__.SDEF "
    content = b"!<arch>\n" + index + header + name + body + b"\n"
    assert list(building.archive_members(content)) == [body]


def test_hidden_symbols_become_exports() -> None:
    symbols = struct.pack("<IBBHQ", 1, 0x1F, 1, 0, 0) + struct.pack("<IBBHQ", 2, 0x64, 1, 0, 0)
    content = struct.pack("<8I", 0xFEEDFACF, 0, 0, 1, 1, 24, 0, 0) + struct.pack("<6I", 2, 24, 56, 2, 0, 0) + symbols
    changed = building.with_exports(content)
    assert (changed[60], changed[76]) == (0x0F, 0x64), "a debugging entry stays as it is"


@pytest.mark.parametrize(
    ("system", "machine", "message"),
    [
        ("linux", "x86_64", "no qemu-aarch64 to run arm64 code: apt-get install qemu-user, or an arm64 machine"),
        ("darwin", "arm64", "run on Linux only"),
    ],
)
def test_a_machine_that_runs_no_arm64_code_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str, message: str
) -> None:
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(MachOError, match=message):
        arm64_command()


def test_an_arm64_machine_runs_it_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert arm64_command() == []


@pytest.mark.network
class TestRunning:
    def test_every_shim_behaves_as_on_macos(self, checks: Path) -> None:
        done = run(checks)
        lines = [line.split(" ") for line in done.stdout.splitlines() if line.startswith(("holds ", "fails "))]
        assert done.returncode == 0, done.stderr
        assert [name for verdict, name in lines if verdict == "fails"] == []
        names = subprocess.run(
            [*arm64_command(), building.loader(), "--names"], capture_output=True, text=True, check=True
        )
        offered = set(names.stdout.split())
        assert offered - {name for _, name in lines} - set(ENDINGS) == set(), "a shim without a check"
        assert done.stdout.endswith("exit: first\nexit: second\n"), "what is registered last runs first"

    @pytest.mark.parametrize(("ending", "code"), ENDINGS.items())
    def test_a_process_ends_as_the_call_says(self, checks: Path, ending: str, code: int) -> None:
        assert run(checks, ending).returncode == code

    def test_an_unknown_name_is_named_when_it_is_called(self, checks: Path) -> None:
        assert "getuid is called, which nothing here defines" in run(checks, "unknown").stderr

    @pytest.mark.parametrize(
        ("at", "value", "message"),
        [
            (0, 0xFEEDFACE, "is not a 64-bit Mach-O file"),
            (4, 0x01000007, "another processor than arm64"),
            (8, 0x80000002, "arm64e"),
            (12, 2, "not a library"),
            (20, 1 << 30, "end behind the end of the file"),
        ],
    )
    def test_a_file_of_another_kind_is_refused(
        self, checks: Path, tmp_path: Path, at: int, value: int, message: str
    ) -> None:
        content = bytearray(checks.read_bytes())
        struct.pack_into("<I", content, at, value)
        (tmp_path / "other.dylib").write_bytes(content)
        done = run(tmp_path / "other.dylib")
        assert done.returncode == 97
        assert message in done.stderr

    @pytest.mark.parametrize(
        ("formats", "message"),
        [
            ({}, "no library exports check_shims"),
            ({"imports": 4}, "its imports have format 4, names 0; the loader knows 1 to 3, not compressed"),
            ({"names": 1}, "its imports have format 1, names 1"),
            ({"pointers": 12}, "its pointers have format 12; the loader knows 2 and 6"),
        ],
    )
    def test_chained_fixups_of_an_unknown_format_are_refused(
        self, arm64: None, tmp_path: Path, formats: dict[str, int], message: str
    ) -> None:
        (tmp_path / "library.dylib").write_bytes(library_with_fixups(**formats))
        done = run(tmp_path / "library.dylib")
        assert (done.returncode, done.stderr.count("\n")) == (97, 1)
        assert message in done.stderr

    def test_a_file_that_was_cut_short_is_refused(self, checks: Path, tmp_path: Path) -> None:
        content = checks.read_bytes()
        (tmp_path / "short.dylib").write_bytes(content[: len(content) * 2 // 3])
        done = run(tmp_path / "short.dylib")
        assert done.returncode == 97
        assert "ends behind the end of the file" in done.stderr


def test_registration_of_classes_reads_the_sections_of_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: dict[str, tuple[str, ...]] = {}
    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path))
    monkeypatch.setattr(building, "apple_folder", lambda: tmp_path)
    monkeypatch.setattr(
        building, "_run", lambda *words: compiled.update({Path(words[words.index("-c") + 1]).name: words})
    )
    monkeypatch.setattr(building, "link", lambda objects, target: target.touch())
    building.frameworks()
    included = {Path(word[2:]) for word in compiled["image.cpp"] if word.startswith("-I")}
    assert not [folder for folder in included if (folder / "mach-o" / "getsect.h").is_file()]  # for Linux: no sections
    assert len(compiled) > 20
