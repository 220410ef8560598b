"""A defect and the program that shows it: the auditor and the owner of a Mac run the same text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from .... import __version__
from ..verdicts import CompiledVerdict

SCRIPT = '''\
"""{number}: {title}

Found by mpsmith {version} on a SIMULATED mps device, so nothing is known about a Mac yet. On a Mac it prints what the
compiled program returns beside what the CPU does; TORCH_LOGS=output_code shows the Metal that was generated.
"""

import torch

print("torch", torch.__version__)

{lines}

def attempt(function, device):
    try:
        result = function(*[each.clone().to(device) for each in inputs])
    except Exception as error:
        return f"{{type(error).__name__}}: {{str(error)[:300]}}"
    if isinstance(result, tuple):
        return tuple(each.cpu() for each in result)
    return result.cpu() if isinstance(result, torch.Tensor) else result


torch._dynamo.reset()
expected = attempt(program, "cpu")
actual = attempt({compiled}, "mps")
print("CPU: ", expected)
print("mps: ", actual)
try:
    torch.testing.assert_close(actual, expected, equal_nan=True)
    print("the same")
except (AssertionError, TypeError):
    print("DIFFERENT")
'''


class Certainty(str, Enum):
    """How sure it is that a Mac shows a defect too, the surest first."""

    LOGIC = "logic of the generated source"
    """The source says something else than the program, whatever runs it; or nothing is generated at all."""
    UNDEFINED = "undefined behaviour"
    """The source relies on what Metal leaves open: a Mac may or may not show it, today or with the next chip."""
    APPLE = "Apple's library"
    """It turns on what Apple's compiler accepts or its library returns: a Mac has to say first."""


@dataclass(frozen=True)
class Report:
    """Something public that says the same or something near.

    Attributes:
        link: where it stands.
        says: what it adds, in a few words.
    """

    link: str
    says: str


@dataclass(frozen=True)
class Defect:
    """One defect of upstream's code generator.

    Attributes:
        number: what it is called here, such as "U1".
        title: what is wrong, for people.
        lines: Python after `import torch` that defines `program` and the list `inputs` of tensors on the CPU.
        why: where in the generated source, or in the generator, it comes from.
        certainty: how sure it is for a Mac.
        verdict: what the program shows with the release that this was written with.
        reports: what is public; nothing was found where it is empty.
        compiles_itself: the program calls torch.compile where it needs it, and is not compiled as a whole.
    """

    number: str
    title: str
    lines: str
    why: str
    certainty: Certainty
    verdict: CompiledVerdict
    reports: tuple[Report, ...] = ()
    compiles_itself: bool = False

    def script(self) -> str:
        """The program that a Mac's owner runs: it needs nothing but torch."""
        compiled = "program" if self.compiles_itself else "torch.compile(program, fullgraph=True)"
        return SCRIPT.format(
            number=self.number,
            title=self.title,
            version=__version__,
            lines=f"{self.lines.strip()}\n",
            compiled=compiled,
        )

    def program(self) -> tuple[Callable[..., Any], list[Any]]:
        """The function of the script and its inputs."""
        import torch

        defined: dict[str, Any] = {"torch": torch}
        exec(compile(self.lines, f"<{self.number}>", "exec"), defined)
        return defined["program"], defined["inputs"]
