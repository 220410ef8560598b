"""What is said of a workload under torch.compile beside our kernel, from the counts alone."""

from __future__ import annotations

import pytest
import torch

from mpsmith.kernels.verification.composition import Traffic, _bytes_of, in_words

OURS = Traffic(2, 1_000_000)


@pytest.mark.parametrize(
    ("compiled", "said"),
    [
        (Traffic(1, 1_000_000), "compile it: less than ours"),
        (Traffic(1, 500_000), "compile it: less than ours"),
        (Traffic(2, 500_000), "compile it: less than ours"),
        (Traffic(2, 1_000_000), "as much as ours"),
        (Traffic(2, 1_050_000), "as much as ours"),
        (Traffic(2, 949_000), "compile it: less than ours"),
        (Traffic(3, 1_000_000), "more than ours"),
        (Traffic(2, 1_500_000), "more than ours"),
        (Traffic(1, 1_500_000), "fewer launches, more memory"),
        (Traffic(3, 500_000), "more launches, less memory"),
        (None, ""),
    ],
)
def test_both_ways_are_weighed(compiled: Traffic | None, said: str) -> None:
    assert in_words(OURS, compiled) == said


def test_a_launch_binds_each_tensor_once_and_no_more_than_its_memory() -> None:
    plain = torch.zeros(10)
    assert _bytes_of(plain) == 40
    assert _bytes_of(plain.expand(7, 10)) == 40
    assert _bytes_of([plain, plain[:2]]) == 48
    assert _bytes_of((3, 1.5, "int")) == 0
