from __future__ import annotations

import hashlib
from collections.abc import Mapping

import pytest

from mpsmith.audit.releases.wheel.kernel_diff import compare_kernels
from mpsmith.audit.releases.wheel.kernel_families import KernelFamilies, known_families
from mpsmith.errors import MpsmithError
from mpsmith.simulator.air.container import LibraryFunction, Version

FAMILIES = KernelFamilies(["add.Tensor", "add_.Tensor", "_foreach_add.List", "add_rms", "special_i0", "scatter.src"])


@pytest.mark.parametrize(
    ("kernel", "family"),
    [
        ("add_dense_float_float", "add"),
        ("add_dense_scalar_lhs_cast_half_half", "add"),
        ("add_rms_float", "add_rms"),
        ("i0_strided_half_half", "i0"),
        ("scatter_set_dense_value_long", "scatter"),
        ("mb_sort_block_tptg32_float", "mb_sort"),
        ("sdpa_vector_2pass_1_64_64_maskbool_half", "sdpa_vector"),
        ("prefill_attention_float16_bq16", "prefill_attention"),
        ("addition_float", "addition"),
        ("float_float", "float_float"),
    ],
)
def test_the_family_is_the_prefix_of_a_name(kernel: str, family: str) -> None:
    assert FAMILIES.family(kernel) == family


def test_a_family_serves_every_operator_of_its_name() -> None:
    assert FAMILIES.operators_of("add") == ("_foreach_add", "add")
    assert FAMILIES.operators_of("i0") == ("special_i0",)
    assert FAMILIES.operators_of("mb_sort") == ()


def test_kernels_of_an_operator() -> None:
    kernels = ["add_dense_float", "add_rms_float", "i0_dense_half", "mb_sort_float"]
    assert FAMILIES.select(kernels, ["add"]) == ["add_dense_float"]
    assert FAMILIES.select(kernels, ["aten::special_i0", "add*"]) == kernels[:3]
    assert FAMILIES.select(kernels, ["scatter"]) == []
    with pytest.raises(MpsmithError, match="no operator matches scater"):
        FAMILIES.select(kernels, ["scater"])


def test_the_operators_of_all_releases_are_known() -> None:
    assert known_families().operators_of("hypot") == ("hypot",)
    assert known_families().family("index_reduce_amax_float_long") == "index_reduce"


def functions(modules: Mapping[str, str]) -> list[LibraryFunction]:
    return [
        LibraryFunction(name, 2, hashlib.sha256(code.encode()).hexdigest(), len(code), 0, Version(2, 6), Version(3, 1))
        for name, code in modules.items()
    ]


def test_every_kernel_of_either_library_is_sorted_out_once() -> None:
    before = functions({"add_dense_float_float": "1", "add_dense_half_half": "1", "i0_dense_half_half": "1"})
    after = functions({"add_dense_float_float": "1", "add_dense_half_half": "2", "mb_sort_block_float": "1"})
    changes = compare_kernels(before, after, FAMILIES)
    assert changes.names("same") == ("add_dense_float_float",)
    assert changes.names("changed") == ("add_dense_half_half",)
    assert changes.names("went") == ("i0_dense_half_half",)
    assert changes.names("came") == ("mb_sort_block_float",)
    assert [each.family for each in changes.families] == ["add", "i0", "mb_sort"]


def test_dtypes_that_operators_gained_and_lost() -> None:
    before = functions({"add_dense_float_float": "1", "i0_dense_half_half": "1"})
    after = functions({"add_dense_float_float": "1", "add_dense_long_long": "1", "i0_dense_float_float": "1"})
    changes = compare_kernels(before, after, FAMILIES)
    assert changes.dtypes_came == {"_foreach_add": ("int64",), "add": ("int64",), "special_i0": ("float32",)}
    assert changes.dtypes_went == {"special_i0": ("float16",)}
