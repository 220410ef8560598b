"""The arithmetic by which products modulo 2^64 are sums: the numbers that the Metal source holds."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from math import factorial

import pytest

from mpsmith.cache import PACKAGE

MODULUS, EXPONENTS = 2**64, 2**62


@cache
def constants(name: str) -> list[int]:
    """The numbers behind `name =`."""
    text = (PACKAGE / "kernels" / "scatter_product" / "scatter_product.metal").read_text(encoding="utf-8")
    definition = re.search(rf"\b{name}(?:\[[^]]*\])? = ([^;]*);", text)
    assert definition is not None
    return [int(number, 0) for number in re.findall(r"\b0x[0-9a-f]+", definition[1])]


def modulo(x: Fraction) -> int:
    """`x`, whose denominator is odd, modulo 2^64."""
    return x.numerator * pow(x.denominator, -1, MODULUS) % MODULUS


def test_the_logarithms_give_their_numbers_back() -> None:
    logs = constants("LOGARITHMS")
    assert [pow(5, log, MODULUS) for log in logs] == [1 + 2**i for i in range(2, 14)]
    assert all(log < EXPONENTS for log in logs)
    assert all(log & -log == 2**k for k, log in enumerate(logs)), "each clears one more bit of an exponent"


def test_a_quarter_of_the_natural_logarithm_of_5() -> None:
    """log(1 + 4) = 4 - 4^2 / 2 + 4^3 / 3 - ...: 4^40 / 40 has 77 twos, and what follows has more."""
    (quarter,) = constants("QUARTER_OF_LOG_5")
    assert quarter == modulo(sum(Fraction(-((-4) ** k), k) for k in range(1, 40))) // 4


@pytest.mark.parametrize("exponent", [0, 1, 5, 2**50 - 1, 2**50 - 2])
def test_five_is_the_exponential_of_its_natural_logarithm(exponent: int) -> None:
    """As far as the series of the kernel goes: for powers whose logarithm is a multiple of 2^14."""
    (quarter,) = constants("QUARTER_OF_LOG_5")
    log = 4 * quarter * exponent << 12
    assert modulo(sum(Fraction(log**k, factorial(k)) for k in range(5))) == pow(5, exponent << 12, MODULUS)


def test_inverses() -> None:
    (quarter,), (inverse,), (third,) = map(constants, ("QUARTER_OF_LOG_5", "ITS_INVERSE", "THIRD"))
    assert quarter * inverse % EXPONENTS == 1
    assert third * 3 % MODULUS == 1
