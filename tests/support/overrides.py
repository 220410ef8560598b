"""A fault as an outsider writes it: a kernel of the simulated device wrapped by a function of Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from mpsmith.audit.calls.invocation import overload_of
from mpsmith.audit.cases import CaseSource, make_cases
from mpsmith.audit.group import GroupKey
from mpsmith.audit.judging.fallbacks import CounterRecorder
from mpsmith.audit.judging.judge import judge
from mpsmith.audit.selection import Samples
from mpsmith.audit.verdicts import CaseVerdict

# Gets the device's own kernel, then what the operator was called with.
Faulty = Callable[..., Any]


@contextmanager
def overridden(name: str, faulty: Faulty) -> Iterator[None]:
    """The overload "aten::topk" does what `faulty(kernel, *args, **kwargs)` does, as long as this lasts."""
    overload = overload_of(name)
    kernel = torch.library.get_kernel(overload, "MPS")  # type: ignore[attr-defined]

    def run(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        return faulty(lambda *a, **k: kernel.call_boxed(keyset, *a, **k), *args, **kwargs)

    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    library.impl(overload, run, "MPS", with_keyset=True, allow_override=True)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        library._destroy()  # type: ignore[no-untyped-call]


def wrong_cases(source: CaseSource, operator: str, dtype: str = "float32") -> list[str]:
    """The titles of the source's cases of one group that the device gets wrong; all others must pass."""
    cases = make_cases(source, GroupKey(source.name, operator, "", dtype, "fallback"), Samples.DEFAULT, 0)
    assert cases
    verdicts = [(case.title, judge(case, CounterRecorder(), 0, str(p)).verdict) for p, case in cases.items()]
    assert {verdict for _, verdict in verdicts} <= {CaseVerdict.PASSED, CaseVerdict.WRONG}
    return [title for title, verdict in verdicts if verdict is CaseVerdict.WRONG]
