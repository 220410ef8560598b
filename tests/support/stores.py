"""Results stores written without an audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.verdicts import Grade, Outcome
from mpsmith.audit.store.records import Run
from mpsmith.audit.store.store import Store

ENVIRONMENT = {"torch": "2.13.0", "simulated": True, "profile": "2.13.0"}


@dataclass
class Recording:
    """A run under construction; `add` plans groups as it goes."""

    store: Store
    run: Run

    def add(
        self,
        key: GroupKey,
        *outcomes: Outcome,
        inputs: str = "",
        calls: Mapping[str, bool] | None = None,
        start: int | None = None,
        done: bool = True,
        fits: Mapping[str, float] | None = None,
        grade: Grade | None = None,
    ) -> None:
        """Cases of one group.

        `inputs`: of each of them; by default one tensor of the group's dtype.
        `calls`: whether each overload that they called was outermost, by its name with or without `aten::`.
        `start`: the position of the first; by default behind those that the group has.
        `fits`: the predictions that each of them fits; `grade`: of their evidence, None for that of the run's device.
        """
        self.store.plan(self.run.id, [key])
        group = next(group.id for group in self.store.groups(self.run.id) if group.key == key)
        first = len(self.store.positions(group)) if start is None else start
        self.store.add_cases(
            [
                (group, position, outcome, inputs or f"({key.dtype}[3])")
                for position, outcome in enumerate(outcomes, first)
            ],
            grade,
        )
        for position in range(first, first + len(outcomes)) if fits else ():
            self.store.add_predictions(group, position, fits or {})
        called = {name if "::" in name else f"aten::{name}": outermost for name, outermost in (calls or {}).items()}
        self.store.add_called_overloads(group, called)
        if done:
            self.store.mark_done(group)

    def finish(self) -> Run:
        """The finished run."""
        self.store.finish_run(self.run.id)
        return self.store.run(self.run.id)


def begun(
    store: Store, settings: Mapping[str, object] | None = None, environment: Mapping[str, object] | None = None
) -> Recording:
    """A new run of the default samples on the simulated device, unless told otherwise."""
    run = store.begin_run({"samples": "default", **(settings or {})}, {**ENVIRONMENT, **(environment or {})})
    return Recording(store, run)


def opinfo(operator: str, dtype: str = "float32", mode: str = "fallback") -> GroupKey:
    """The group of an OpInfo's cases."""
    return GroupKey("opinfo", operator, "", dtype, mode)


def new_store(folder: Path) -> Store:
    """An empty store in `folder`."""
    return Store.create(folder / "store.sqlite")
