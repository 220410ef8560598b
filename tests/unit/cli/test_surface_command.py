import json

import pytest
import typer

from mpsmith.cli.surface import surface
from mpsmith.errors import MpsmithError
from support.commands import output


def run(*arguments: str) -> str:
    app = typer.Typer()
    app.command()(surface)
    return output(app, *arguments)


def test_counts_add_up() -> None:
    rows = [line.split() for line in run().splitlines()[4:]]
    numbers = [int(row[-3]) for row in rows]
    assert sum(numbers[:-1]) == numbers[-1]


def test_chosen_overloads() -> None:
    shown = run("--ops", "mode")
    assert "aten::mode.values" in shown
    assert "composite explicit" in shown


def test_missing_ones_that_nobody_reaches_are_left_out() -> None:
    shown = run("--missing")
    assert "aten::mode " in shown
    assert "mkldnn" not in shown


def test_json_has_schemas_and_reasons() -> None:
    data = json.loads(run("--ops", "mkldnn_rnn_layer", "--json"))
    listed = {overload["name"]: overload for overload in data["overloads"]}
    assert listed["aten::mkldnn_rnn_layer"]["schema"].startswith("aten::mkldnn_rnn_layer(Tensor input")
    assert listed["aten::mkldnn_rnn_layer"]["unreachable"]["rule"] == "mkldnn"


def test_operators_of_other_packages() -> None:
    torch = pytest.importorskip("torch")

    @torch.library.custom_op("mpsmith_test_command::thrice", mutates_args=(), device_types="cpu")
    def thrice(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    shown = run("--ops", "mpsmith_test_command::thrice", "--import", "json")
    assert "mpsmith_test_command::thrice" in shown
    assert "missing" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--ops", "sofshrink"), r"no operator matches sofshrink \(did you mean softshrink"),
        (("--ops", "absent::f"), "no operator matches absent::f; import the package that defines it first"),
        (("--import", "no_such_package"), "cannot import no_such_package"),
    ],
)
def test_bad_input_is_one_clear_error(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(MpsmithError, match=message):
        run(*arguments)
