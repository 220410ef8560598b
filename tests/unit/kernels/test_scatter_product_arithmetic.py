"""The arithmetic by which products modulo 2^64 are sums: the logarithms that the kernel is given."""

from __future__ import annotations

import torch

from mpsmith.kernels.scatter_product.scatter_product import logarithms

MODULUS = 2**64


def test_the_logarithms_give_their_numbers_back() -> None:
    logs = logarithms(torch.device("cpu")).tolist()
    assert len(logs) == 62
    assert [pow(5, log, MODULUS) for log in logs] == [1 + 2**i for i in range(2, 64)]
    assert all(log & -log == 2**k for k, log in enumerate(logs)), "each clears one more bit of an exponent"
