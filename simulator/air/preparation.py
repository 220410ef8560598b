"""Compiles many kernels ahead of use, several at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed

from ..errors import AirError, KernelCacheError

Progress = Callable[[int, int], None]
"""Called with the number of compiled kernels and the total."""


def prepare(
    names: Iterable[str],
    compile_kernel: Callable[[str], object],
    workers: int | None = None,
    progress: Progress | None = None,
) -> Mapping[str, AirError]:
    """Compile kernels with `compile_kernel`; returns the errors by name.

    The compiler runs in separate processes, so threads wait for it. An exception, such as an interrupt from the
    keyboard, ends the compiler's runs under way and drops those to come.

    Raises:
        KernelCacheError: what is compiled cannot be kept; the rest is given up.
    """
    wanted = list(dict.fromkeys(names))
    failed: dict[str, AirError] = {}
    with ThreadPoolExecutor(max_workers=workers or os.cpu_count() or 1) as pool:
        futures = {pool.submit(compile_kernel, name): name for name in wanted}
        try:
            for count, future in enumerate(as_completed(futures), 1):
                try:
                    future.result()
                except KernelCacheError:
                    raise
                except AirError as error:
                    failed[futures[future]] = error
                if progress:
                    progress(count, len(wanted))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return failed
