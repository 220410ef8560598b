"""What names somebody goes, whatever surrounds it; what tells of an error stays."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpsmith.reports.evidence.privacy import PrivateNames, message_of, names_somebody, scrubbed

ADA = PrivateNames(
    users=("ada", "Ada Lovelace"),
    hosts=("adas-mbp", "adas-mbp.fritz.box"),
    folders=("/Users/ada", "/opt/My Work", "/var/folders/ab/c1/T"),
)
SECRETS = (
    *(
        "/Users/ada/notes/plan.txt",
        "/Users/Grace Hopper/secret plan/kernel.txt",
        "/home/ada/x",
        "~/x/plan",
        "~grace/plan",
    ),
    *("/opt/My Work/plan", "/var/folders/ab/c1/T/plan", "/private/var/folders/zz/plan", "file:///Volumes/Disk/plan"),
    *("/tmp/mpsmith-ada/plan", "C:\\Users\\ada\\plan", "adas-mbp", "ADAS-MBP.local", "grace.local", "10.1.2.3"),
    *(
        "fe80::1c2:3d4",
        "a0:b1:c2:d3:e4:f5",
        "ada@example.org",
        "Ada Lovelace",
        "ADA",
        "ada_",
        "Serial Number: C02XK1ZZJG5H",
    ),
    *("123e4567-e89b-12d3-a456-426614174000", "/private/Users/ada"),
)
TELLING = (
    "ada",
    "lovelace",
    "grace",
    "hopper",
    "plan",
    "mbp",
    "c02xk",
    "10.1.2.3",
    "1c2",
    "426614174000",
    "e4:f5",
    "my work",
)
AROUND = ("", "cannot open ", "'", '"', "(", "[", "error: ", "at ", "; ", ", ", "=", "\n", "\t", "→ ", ": ")


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("before", AROUND)
def test_what_names_somebody_goes(secret: str, before: str) -> None:
    text = scrubbed(f"{before}{secret}{before[::-1]}", ADA).lower()
    assert [word for word in TELLING if word in text] == []


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.one_of(st.sampled_from(SECRETS), st.sampled_from(AROUND), st.sampled_from([" and ", " ", "."]))))
def test_secrets_in_any_mixture_go_and_nothing_is_left_to_take(parts: list[str]) -> None:
    text = scrubbed(" ".join(parts), ADA)
    assert [word for word in TELLING if word in text.lower()] == []
    assert scrubbed(text, ADA) == text


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.text(max_size=80), st.integers(1, 60))
def test_what_was_scrubbed_and_cut_passes_the_check(text: str, longest: int) -> None:
    message = message_of(text, ADA, longest)
    assert not names_somebody(message)
    assert len(message) <= longest
    assert message.isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "expected (3, 4), got (3, 5) in float32/float16",
        "see https://github.com/pytorch/pytorch/issues/96056",
        "aten/src/ATen/native/mps/OperationUtils.mm:123: failed assertion",
        "raises RuntimeError: mode only supports CPU, CUDA and XPU device type, got: mps",
        "1/2 of the elements differ, the largest error is 3.5 / 2.0",
        "adapter of a canada goose",
        "torch 2.13.0",
    ],
)
def test_what_tells_of_an_error_stays(text: str) -> None:
    assert scrubbed(text, ADA) == text


def test_the_name_of_a_source_file_stays_without_its_folders() -> None:
    text = 'ASSERT FAILED at "/Users/ada/pytorch/aten/TensorShape.cpp":4754, in /opt/x/libtorch.dylib'
    assert scrubbed(text, ADA) == 'ASSERT FAILED at "<path>TensorShape.cpp":4754, in <path>libtorch.dylib'


def test_colours_and_other_controls_go() -> None:
    assert scrubbed("\x1b[31mred\x1b[0m\r\nline\x00") == "[31mred [0m line"


def test_a_name_that_everybody_has_stays() -> None:
    assert "root" not in PrivateNames.of_this_machine().users


def test_this_machine_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "lovelace")
    monkeypatch.setattr("socket.gethostname", lambda: "engine.example")
    assert scrubbed("lovelace at engine", PrivateNames.of_this_machine()) == "<user> at <host>"
