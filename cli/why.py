"""``mpsmith why``: does an operator work on mps, since when, and what to do if not."""

from __future__ import annotations

from typing import Annotated

import typer

from ..errors import MpsmithError
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

    try:
        answered = answer(operator, torch)
    except MpsmithError:
        if not _print_other_library(operator, as_json=as_json):
            raise
        return
    if as_json:
        print_json(as_data(answered))
    else:
        print(as_text(answered))


def _print_other_library(name: str, *, as_json: bool) -> bool:
    """Print the kernels for an operator of another library, such as torchvision; return False if there are none."""
    from ..audit.answers.names import KERNELS_OF_OTHER_LIBRARIES

    last = name.partition("(")[0].replace("::", ".").rpartition(".")[2]
    kernels = [
        (family, operator)
        for family, operators in KERNELS_OF_OTHER_LIBRARIES.items()
        for operator in operators
        if any(other.rpartition("::")[2] == last for other in operators)
    ]
    if not kernels:
        return False
    asked = kernels[0][1]
    library = asked.partition("::")[0]
    reason = f"An operator of {library}, not of torch: no audit says whether {library}'s own kernel is right."
    step = {"text": "Use mpsmith's kernel", "command": "import mpsmith.kernels"}
    if as_json:
        kernel_rows = [{"operator": operator, "family": family} for family, operator in kernels]
        print_json({"name": name, "library": library, "reason": reason, "kernels": kernel_rows, "next": [step]})
    else:
        print(f"{asked} has a Metal kernel in mpsmith")
        print(f"  why       {reason}")
        print(f"  kernel    {', '.join(f'{family} for {operator}' for family, operator in kernels)}")
        print(f"  next      {step['text']}: {step['command']}")
    return True
