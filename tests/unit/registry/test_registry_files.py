from pathlib import Path

import pytest

from mpsmith.registry.files import VerifiedKernel, check, edit, edit_all, load, record_evidence
from mpsmith.registry.model import Evidence, Status
from mpsmith.registry.problems import RegistryError

GOOD = """\
# Operators with m.

aten::mode:
  status: missing  # asked for
  owner: someone
  # Upstream knows.
  issue: https://github.com/pytorch/pytorch/issues/77764
  notes: >
    folded
    text
  measured:
    simulated:
      torch: 2.13.0
      verdict: missing
      overloads:
        aten::mode: missing
        aten::mode.values: composite explicit
      dtypes:
        missing: [float32, int64]

aten::median:
  measured:
    mps:
      torch: 2.13.0
      verdict: native
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "operators"
    folder.mkdir()
    return folder


def write(folder: Path, text: str, name: str = "m.yaml") -> Path:
    path = folder / name
    path.write_bytes(text.encode("utf-8"))
    return path


def messages(folder: Path) -> list[str]:
    return [str(problem) for problem in check(folder)]


def test_entries_are_read_with_their_places(folder: Path) -> None:
    write(folder, GOOD)
    registry = load(folder)
    assert list(registry) == ["aten::mode", "aten::median"]
    entry = registry["aten::mode"]
    assert entry.status is Status.missing
    assert entry.owner == "someone"
    assert entry.notes == "folded text\n"
    assert entry.measured["simulated"].overloads["aten::mode.values"] == "composite explicit"
    assert str(registry.place("aten::median")) == "operators/m.yaml:21"
    assert registry.get("aten::sort") is None


def test_files_without_entries_are_fine(folder: Path) -> None:
    write(folder, "", "a.yaml")
    write(folder, "# only a comment\n", "b.yaml")
    write(folder, "---\n", "c.yaml")
    assert len(load(folder)) == 0


def test_other_files_are_left_alone(folder: Path) -> None:
    write(folder, "not: [yaml", "README.md")
    write(folder, "not: [yaml", ".m.yaml.swp")
    assert check(folder) == []


def test_rejects_a_folder_that_does_not_exist(folder: Path) -> None:
    with pytest.raises(RegistryError, match=r"there is no registry folder elsewhere"):
        load(folder.parent / "elsewhere")


def test_the_variable_names_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, GOOD)
    monkeypatch.setenv("MPSMITH_REGISTRY", str(folder))
    assert "aten::mode" in load()


def test_a_release_with_a_zero_at_its_end_keeps_it(folder: Path) -> None:
    write(folder, "aten::mode:\n  measured:\n    mps: {torch: 2.10, verdict: native}\n")
    assert load(folder)["aten::mode"].measured["mps"].torch == "2.10"


MEASURED = "aten::mode:\n  measured:\n    mps:\n      torch: 2.13.0\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("aten::mode:\n  owner: [a\n", "3:1: malformed YAML"),
        ("aten::mode:\n  owner: a: b\n", "2:11: malformed YAML"),
        ("aten::mode:\n  owner: a\x00b\n", "2:1: malformed YAML"),
        ("aten::mode:\n  owner: a\n---\naten::x:\n  owner: b\n", "malformed YAML"),
        ("- aten::mode\n", "1:1: a registry file is a mapping in block style"),
        ("{aten::mode: {owner: a}}\n", "1:1: a registry file is a mapping in block style"),
        ("[a]: b\n", "1:1: a key must be plain text"),
        ("aten::mode:\n  ownr: a\n", "2:3: aten::mode: unknown key 'ownr' (did you mean owner?)"),
        (
            MEASURED + "      verdict: native\n      verdikt: x\n",
            "6:7: aten::mode: unknown key 'verdikt' (did you mean verdict?)",
        ),
        (MEASURED, "3:5: aten::mode: the key 'verdict' is missing"),
        (
            "aten::mode:\n  owner: a\n  status: missing\n  owner: b\n",
            "4:3: the key 'owner' occurs twice; it is first on line 2",
        ),
        (
            "aten::mode:\n  owner: a\naten::mode:\n  owner: b\n",
            "3:1: the key 'aten::mode' occurs twice; it is first on line 1",
        ),
        (
            "aten::mode:\n  status: mising\n",
            "2:11: aten::mode: 'mising' is not a value of status; allowed are native, composite, falls back, missing,",
        ),
        (
            MEASURED + "      verdict: wrong\n      dtypes:\n        bad: [int8]\n",
            "7:9: aten::mode: 'bad' is not a key; allowed are passed,",
        ),
        (
            MEASURED + "      verdict: wrong\n      dtypes:\n        wrong: [int8, Int 64]\n",
            "7:23: aten::mode: 'Int 64' does not fit dtypes",
        ),
        ("aten::mode:\n  status: not applicable\n", "1:1: aten::mode: the status 'not applicable' needs a reason"),
        (
            "aten::mode:\n  issue: see above\n",
            "2:10: aten::mode: 'see above' does not fit: an issue is a number in pytorch/pytorch or a URL",
        ),
        ("aten::mode:\n  owner: [a, b]\n", "2:10: aten::mode: owner must be text, not a list"),
        ("aten::mode: missing\n", "1:13: aten::mode: an entry is a mapping of fields"),
        ("aten::mode:\n", "1:1: aten::mode: the entry is empty"),
        (
            "aten::mode:\n  operator: aten::mode\n",
            "2:3: aten::mode: the entry's key names the operator: remove this field",
        ),
        ("aten::mode.values:\n  owner: a\n", "an entry is for all overloads: 'aten::mode'"),
        ("aten::mode: &a\n  owner: a\naten::mean: *a\n", "1:13: anchors and aliases are not used"),
        ("aten::mode:\n  owner: !!int 3\n", "2:10: the tag tag:yaml.org,2002:int is not used"),
        ("aten::mode:\n  <<: {owner: a}\n", "2:3: aten::mode: unknown key '<<'"),
    ],
)
def test_reports_problems_with_line_and_column(folder: Path, text: str, expected: str) -> None:
    write(folder, text)
    problems = messages(folder)
    assert any(expected in message for message in problems), problems
    assert all(message.startswith("operators/m.yaml:") for message in problems)
    with pytest.raises(RegistryError) as raised:
        load(folder)
    assert expected in str(raised.value)


def test_all_problems_of_all_files_are_listed_in_order(folder: Path) -> None:
    write(folder, "aten::b:\n  owner: [x\naten::b2:\n  ownr: y\naten::b3:\n  owner: a: b\n", "b.yaml")
    write(folder, "aten::a:\n  status: lost\n  color: red\n  issue: none\naten::a2: 3\n", "a.yaml")
    with pytest.raises(RegistryError) as raised:
        load(folder)
    lines = str(raised.value).splitlines()
    assert lines[0] == "the registry has 6 problems"
    places = [line.strip().split(": ")[0] for line in lines[1:]]
    assert places == [
        "operators/a.yaml:2:11",
        "operators/a.yaml:3:3",
        "operators/a.yaml:4:10",
        "operators/a.yaml:5:11",
        "operators/b.yaml:3:1",
        "operators/b.yaml:6:11",
    ]
    assert len(raised.value.problems) == 6


def test_the_same_operator_in_two_files_is_a_problem(folder: Path) -> None:
    write(folder, "aten::mode:\n  owner: a\n", "m.yaml")
    write(folder, "# moved\naten::mode:\n  owner: b\n", "n.yaml")
    expected = "operators/n.yaml:2:1: aten::mode: the operator has an entry already, at operators/m.yaml:1"
    assert messages(folder) == [expected]


def test_reports_bytes_that_are_not_utf8(folder: Path) -> None:
    (folder / "m.yaml").write_bytes(b"aten::mode:\n  owner: a\n  notes: \xff\xfe\n")
    assert messages(folder) == ["operators/m.yaml:3:1: not UTF-8 text"]


def test_a_file_that_cannot_be_read_is_a_problem(folder: Path) -> None:
    (folder / "m.yaml").mkdir()
    assert messages(folder) == ["operators/m.yaml:1:1: cannot be read: Is a directory"]


def test_reports_files_named_yml(folder: Path) -> None:
    write(folder, "aten::mode:\n  owner: a\n", "m.yml")
    assert messages(folder) == [
        "operators/m.yml:1:1: registry files are named .yaml; this one would be overlooked: rename it"
    ]


def test_reads_valid_entries_beside_problems(folder: Path) -> None:
    from mpsmith.registry.files import examine

    write(folder, "aten::a:\n  ownr: x\naten::b:\n  owner: y\n")
    registry, problems = examine(folder)
    assert list(registry) == ["aten::b"]
    assert len(problems) == 1


def test_new_fields_go_where_the_order_puts_them(folder: Path) -> None:
    path = write(folder, GOOD)
    edit(folder, "mode", {"kernel": "mode", "pull_request": 12345})
    after_issue = "issues/77764\n"
    assert path.read_text() == GOOD.replace(after_issue, after_issue + "  pull_request: 12345\n  kernel: mode\n")
    edit(folder, "median", {"owner": "x"})
    assert "aten::median:\n  owner: x\n  measured:\n" in path.read_text()


def test_none_removes_a_field_and_keeps_its_comment(folder: Path) -> None:
    path = write(folder, GOOD)
    edit(folder, "mode", {"status": None, "notes": None})
    expected = GOOD.replace("  status: missing  # asked for\n", "  # asked for\n")
    assert path.read_text() == expected.replace("  notes: >\n    folded\n    text\n", "")
    assert load(folder)["aten::mode"].current_status is Status.missing  # as measured


def test_an_edit_that_does_not_fit_changes_nothing(folder: Path) -> None:
    path = write(folder, GOOD)
    with pytest.raises(RegistryError, match=r"aten::mode: 'mising' is not a value of status.*did you mean missing\?"):
        edit(folder, "mode", {"status": "mising"})
    with pytest.raises(RegistryError, match="needs a reason"):
        edit(folder, "mode", {"status": "not applicable"})
    with pytest.raises(RegistryError, match="unknown key 'colour'"):
        edit(folder, "mode", {"colour": "red"})
    assert path.read_text() == GOOD


def test_rejects_an_unknown_operator_with_near_names(folder: Path) -> None:
    write(folder, GOOD)
    with pytest.raises(RegistryError, match=r"no entry for aten::moed \(did you mean mode\?\)"):
        edit(folder, "moed", {"owner": "x"})
    with pytest.raises(RegistryError, match=r"aten::mode.values is an overload; .* all overloads of aten::mode"):
        edit(folder, "aten::mode.values", {"owner": "x"})
    assert len(load(folder)) == 2


def test_a_new_entry_is_made_on_request_in_the_order_of_names(folder: Path) -> None:
    path = write(folder, "# head\n\naten::a:\n  owner: x\n\n# of c\naten::c:\n  owner: y\n", "a.yaml")
    edit(folder, "aten::ab", {"owner": "z"}, add=True)
    assert path.read_text() == (
        "# head\n\naten::a:\n  owner: x\n\naten::ab:\n  owner: z\n\n# of c\naten::c:\n  owner: y\n"
    )
    edit(folder, "torchvision::nms", {"owner": "z"}, add=True)
    assert load(folder).place("torchvision::nms").path.name == "torchvision.yaml"


def test_several_edits_are_made_together_or_not_at_all(folder: Path) -> None:
    path = write(folder, GOOD)
    with pytest.raises(RegistryError, match="aten::median"):
        edit_all(folder, {"aten::mode": {"owner": "x"}, "aten::median": {"status": "?"}})
    assert path.read_text() == GOOD
    edit_all(folder, {"aten::mode": {"owner": "x"}, "aten::median": {"owner": "y"}})
    registry = load(folder)
    assert (registry["aten::mode"].owner, registry["aten::median"].owner) == ("x", "y")


def test_rejects_an_edit_of_a_registry_with_problems(folder: Path) -> None:
    path = write(folder, GOOD)
    write(folder, "aten::z:\n  ownr: x\n", "z.yaml")
    with pytest.raises(RegistryError, match=r"operators/z.yaml:2:3"):
        edit(folder, "mode", {"owner": "x"})
    assert path.read_text() == GOOD


EVIDENCE = Evidence(torch="2.13.0", source="0123456789ab", checks=["numerics"], dtypes=["float32"])
IMPLEMENTED = VerifiedKernel("mode", EVIDENCE, Status.implemented)


def test_evidence_is_kept_by_device(folder: Path) -> None:
    write(folder, GOOD)
    record_evidence(folder, "simulated", {"aten::mode": IMPLEMENTED})
    newer = EVIDENCE.model_copy(update={"torch": "2.14.0"})
    recorded = record_evidence(folder, "mps", {"aten::mode": VerifiedKernel("mode", newer, Status.verified)})
    entry = recorded["aten::mode"]
    assert (entry.status, entry.kernel) == (Status.verified, "mode")
    assert entry.evidence == {"mps": newer, "simulated": EVIDENCE}
    assert load(folder)["aten::mode"] == entry


def test_evidence_of_many_operators_is_written_at_once_or_not_at_all(folder: Path) -> None:
    path = write(folder, GOOD)
    before = path.read_text()
    bad = VerifiedKernel("mode", EVIDENCE, Status.verified)  # verified without a real device
    with pytest.raises(RegistryError, match="needs evidence of a real device"):
        record_evidence(folder, "simulated", {"aten::new_here": IMPLEMENTED, "aten::mode": bad})
    assert path.read_text() == before
    assert "aten::new_here" not in load(folder)
    record_evidence(folder, "simulated", {"aten::new_here": IMPLEMENTED, "aten::mode": IMPLEMENTED})
    assert {load(folder)[name].kernel for name in ("aten::new_here", "aten::mode")} == {"mode"}


@pytest.mark.parametrize("nested", ["[" * 50_000, "{a: " * 50_000, "[" * 51])
def test_reports_too_deep_nesting_at_its_line(folder: Path, nested: str) -> None:
    write(folder, f"aten::malformed: }}\naten::mode:\n  notes: {nested}\n")
    shown = [str(problem) for problem in check(folder)]
    assert [text.split(":")[1] for text in shown] == ["1", "3"]
    assert "nested more than 50 deep" in shown[1]
