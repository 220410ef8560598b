"""``mpsmith why``: does an operator work on mps, since when, and what to do if not."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import AsJson
from .printing import print_json


def why(
    operator: Annotated[
        str,
        typer.Argument(
            metavar="OP", help="An operator, function, method or module: mode, x.mode(), linalg.svd, nn.LSTM."
        ),
    ],
    torch: Annotated[
        str | None,
        typer.Option(
            "--torch", metavar="RELEASE", help="A torch release such as 2.15.0; default: the one that was audited."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say whether an operator works on mps: in which dtypes, since which release, and what to do if not.

    The answer comes from data that mpsmith ships: the results of an audit, and what the wheels of releases declare.
    """
    from ..audit.answers.answer import answer
    from ..audit.answers.sentences import as_data, as_text

    found = answer(operator, torch)
    if as_json:
        print_json(as_data(found))
    else:
        print(as_text(found))
