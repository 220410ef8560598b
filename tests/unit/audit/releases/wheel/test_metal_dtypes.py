import pytest

from mpsmith.audit.releases.wheel.metal_dtypes import dtypes_by_operator


@pytest.mark.parametrize(
    ("overloads", "functions", "expected"),
    [
        (["softshrink"], ["softshrink_dense_half_half", "softshrink_dense_float_float"], ("float32", "float16")),
        # The first type of a comparison is that of its result.
        (["eq.Tensor_out"], ["eq_dense_bool_float", "eq_dense_bool_int"], ("float32", "int32")),
        # The last type of argmax is that of its result.
        (["argmax"], ["argmax_reduction_half_long", "argmax_reduction_char_long"], ("float16", "int8")),
        (["_softmax.out"], ["softmax_row_bfloat_u32"], ("bfloat16",)),
        (["special_i0e"], ["i0e_strided_float2"], ("complex64",)),
        (["add_.Tensor"], ["add_alpha_dense_bool_bool"], ("bool",)),
    ],
)
def test_types_in_names(overloads: list[str], functions: list[str], expected: tuple[str, ...]) -> None:
    assert list(dtypes_by_operator(overloads, functions).values()) == [expected]


@pytest.mark.parametrize(
    "function",
    [
        "max_pool_forward_float",  # another operator
        "maximum_dense_float",  # another operator whose name begins alike
        "max_dense_cast_float_half",  # computes in another type than its operand's
        "max_8bit_int",  # copies by width; the type is that of an index
        "max_dense",
        "max_dense_half2",  # no type of a tensor on mps
    ],
)
def test_ignores_names_without_an_operand_type(function: str) -> None:
    assert dtypes_by_operator(["max"], [function]) == {}


def test_the_longest_operator_name_wins() -> None:
    dtypes = dtypes_by_operator(["scatter", "scatter_add"], ["scatter_add_float", "scatter_half"])
    assert dtypes == {"scatter": ("float16",), "scatter_add": ("float32",)}
