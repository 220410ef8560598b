"""The page of networks, from the tables that `mpsmith networks --json` printed."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from ...errors import MpsmithError
from ..table import Document, Table
from .page import PageInputs


class Networks(BaseModel):
    """The sentences above the tables, and the tables."""

    model_config = ConfigDict(extra="ignore")

    about: tuple[str, ...]
    tables: tuple[Table, ...]


def networks_document(inputs: PageInputs) -> Document:
    """The tables of the networks in `inputs.networks`."""
    assert inputs.networks is not None
    networks = read_networks(inputs.networks)
    return Document("Networks, release by release", networks.about, networks.tables)


def read_networks(path: Path) -> Networks:
    """The networks in a file that `mpsmith networks --json` printed. Raises MpsmithError for anything else."""
    try:
        return Networks.model_validate_json(path.read_bytes())
    except OSError as error:
        raise MpsmithError(f"cannot read {path}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        raise MpsmithError(
            f"{path} has no networks: {where}: {first['msg']} (write it with `mpsmith networks --json > {path}`)"
        ) from None
