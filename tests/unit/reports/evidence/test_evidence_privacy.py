"""Scrubbing removes what identifies a person or a machine, and keeps the text of errors."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpsmith.reports.evidence.privacy import PrivateNames, is_private, message_of, redacted

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


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("cannot open '/Users/Grace Hopper/secret plan/kernel.txt'", "cannot open '<path>'"),
        ("at /opt/My Work/plan: denied", "at <path>: denied"),
        ("ADAS-MBP.local by ada@example.org", "<host> by <address>"),
        ("Serial Number: C02XK1ZZJG5H", "Serial Number: <serial>"),
        ("10.1.2.3, fe80::1c2:3d4, a0:b1:c2:d3:e4:f5", "<address>, <address>, <address>"),
    ],
)
def test_private_names_are_replaced_by_marks(text: str, clean: str) -> None:
    assert redacted(text, ADA) == clean


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.one_of(st.sampled_from(SECRETS), st.sampled_from(AROUND), st.sampled_from([" and ", " ", "."]))))
def test_any_mixture_of_secrets_is_scrubbed_in_one_pass(parts: list[str]) -> None:
    text = redacted(" ".join(parts), ADA)
    assert [word for word in TELLING if word in text.lower()] == []
    assert redacted(text, ADA) == text


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.text(max_size=80), st.integers(1, 60))
def test_a_scrubbed_and_cut_text_passes_the_check(text: str, longest: int) -> None:
    message = message_of(text, ADA, longest)
    assert not is_private(message)
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
def test_the_text_of_an_error_stays(text: str) -> None:
    assert redacted(text, ADA) == text


def test_the_name_of_a_source_file_stays_without_its_folders() -> None:
    text = 'ASSERT FAILED at "/Users/ada/pytorch/aten/TensorShape.cpp":4754, in /opt/x/libtorch.dylib'
    assert redacted(text, ADA) == 'ASSERT FAILED at "<path>TensorShape.cpp":4754, in <path>libtorch.dylib'


def test_control_characters_are_removed() -> None:
    assert redacted("\x1b[31mred\x1b[0m\r\nline\x00") == "[31mred [0m line"


def test_common_names_stay() -> None:
    assert "root" not in PrivateNames.of_this_machine().users


def test_the_names_of_this_machine_are_private(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "lovelace")
    monkeypatch.setattr("socket.gethostname", lambda: "engine.example")
    assert redacted("lovelace at engine", PrivateNames.of_this_machine()) == "<user> at <host>"
