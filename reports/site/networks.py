"""The page of networks: the tables that `mpsmith networks --json` has printed."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from ...errors import MpsmithError
from ..tables import Table


class _Data(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Table(_Data):
    heading: str
    note: str
    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Networks(_Data):
    """What stands above the tables, and these."""

    about: tuple[str, ...]
    tables: tuple[_Table, ...]


def read_networks(path: Path) -> Networks:
    """The networks in a file that `mpsmith networks --json` printed. Raises MpsmithError for anything else."""
    try:
        return Networks.model_validate_json(path.read_bytes())
    except OSError as error:
        raise MpsmithError(f"cannot read {path}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the document"
        raise MpsmithError(
            f"{path} has no networks: {place}: {first['msg']} (write it with `mpsmith networks --json > {path}`)"
        ) from None


def network_tables(networks: Networks) -> list[Table]:
    """The tables as the reports have them."""
    return [Table(each.heading, each.titles, each.rows, each.note, frozenset({"overload"})) for each in networks.tables]
