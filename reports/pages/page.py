"""A generated page and its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from ...errors import MpsmithError
from ..table import Document


class Needs(str, Enum):
    """The input of a page, besides the data of this package."""

    NOTHING = "nothing"
    STORES = "results stores"
    NETWORKS = "the output of `mpsmith networks --json`"
    DEVICE = "an mps device or the simulated one, for some minutes"
    WHEEL = "the macOS wheel of the release"


@dataclass(frozen=True)
class PageInputs:
    """The inputs of pages; each page uses a part of them.

    Attributes:
        stores: results stores.
        networks: a file with the output of `mpsmith networks --json`.
        release: a release of torch; "" for the page's own default.
        open_device: opens the mps device with our kernels loaded but off; returns whether it is simulated.
        workers: the number of worker processes.
        report: receives a line of progress.
    """

    stores: Sequence[Path] = ()
    networks: Path | None = None
    release: str = ""
    open_device: Callable[[], bool] | None = None
    workers: int = 1
    report: Callable[[str], None] = lambda line: None


@dataclass(frozen=True)
class Page:
    """A page that a command can write.

    Attributes:
        name: its file name without the suffix.
        title: one line for a list of pages.
        needs: what it is made from.
        document: makes its content.
    """

    name: str
    title: str
    needs: Needs
    document: Callable[[PageInputs], Document]

    def can_be_made(self, inputs: PageInputs) -> bool:
        """Whether `inputs` hold what the page needs."""
        held: dict[Needs, object] = {
            Needs.STORES: inputs.stores,
            Needs.NETWORKS: inputs.networks,
            Needs.DEVICE: inputs.open_device,
        }
        return bool(held.get(self.needs, True))

    def markdown(self, inputs: PageInputs) -> str:
        """The page as Markdown text. Raises MpsmithError if something that it needs is absent."""
        if not self.can_be_made(inputs):
            raise MpsmithError(f"page {self.name} needs {self.needs.value}")
        return self.document(inputs).markdown()
