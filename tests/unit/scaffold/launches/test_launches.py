"""How a schema becomes a launch, and how each language writes it: schemas made by hand, compared letter by letter."""

from __future__ import annotations

from dataclasses import replace

import pytest
from torchgen.model import FunctionSchema

from mpsmith.audit.releases.surface.native_functions import NativeFunction
from mpsmith.audit.releases.surface.overloads import Dispatch, Overload
from mpsmith.audit.releases.surface.reachability import Reachable
from mpsmith.scaffold.launches.aten_host import AtenHost
from mpsmith.scaffold.launches.buffers import BoundBuffer, Result
from mpsmith.scaffold.launches.choices import REDUCTIONS
from mpsmith.scaffold.launches.launch import Launch
from mpsmith.scaffold.launches.python_host import PythonHost
from mpsmith.scaffold.launches.schema_launch import launch_of
from mpsmith.scaffold.launches.upstream_host import UpstreamHost, in_at_native
from mpsmith.scaffold.operators.kinds import KernelKind
from mpsmith.scaffold.operators.model import OverloadModel
from mpsmith.scaffold.operators.observation import Observation, ObservedTensor, Size


def overload(schema: str) -> OverloadModel:
    name = schema.partition("(")[0]
    surface = Overload(
        f"aten::{name}", f"aten::{name}", schema, (), False, Dispatch.MISSING, Dispatch.MISSING, Reachable()
    )
    return OverloadModel(NativeFunction(name, schema, {}), FunctionSchema.parse(schema), surface)


def launch(schema: str, kind: KernelKind = KernelKind.UNARY) -> Launch:
    return launch_of(overload(schema), kind)


OUT = launch(
    "demo.out(Tensor self, Tensor other, *, float a=0.5, int b=1, Tensor(a!) out) -> Tensor(a!)", KernelKind.BINARY
)
MODE = launch("mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)", KernelKind.SORT)
IN_PLACE = launch("demo_(Tensor(a!) self, Scalar value) -> Tensor(a!)")
MAKES = launch("make(int n, float half) -> Tensor")
MUTABLE = launch("step(Tensor(a!) state, Tensor grad) -> Tensor result")


# ---- the launch


def test_outputs_are_bound_first_then_inputs_then_numbers() -> None:
    assert OUT.bound == (
        BoundBuffer("out", "T", written=True),
        BoundBuffer("self", "T"),
        BoundBuffer("other", "T"),
        BoundBuffer("a", "float", host="float"),
        BoundBuffer("b", "long", host="int64_t"),
    )
    assert [buffer.declaration for buffer in OUT.bound] == [
        "device T* out",
        "device const T* self",
        "device const T* other",
        "constant float& a",
        "constant long& b",
    ]
    assert OUT.results == ()
    assert [buffer.name for buffer in OUT.inputs] == ["self", "other"]
    assert [buffer.name for buffer in OUT.outputs] == ["out"]
    assert [buffer.name for buffer in OUT.tensors] == ["out", "self", "other"]
    assert [buffer.name for buffer in OUT.numbers] == ["a", "b"]


def test_results_of_a_functional_form_are_bound_as_outputs_and_indices_are_long() -> None:
    assert MODE.results == (Result("values", "T"), Result("indices", "long", "int64"))
    assert MODE.buffers == (
        BoundBuffer("values", "T", written=True),
        BoundBuffer("indices", "long", written=True),
        BoundBuffer("self", "T"),
        BoundBuffer("row_length", "long", host="int64_t"),
    )
    assert (MODE.id, MODE.name, MODE.form) == ("mode", "mode", "functional")
    assert MODE.text.startswith("aten::mode(Tensor self")
    assert OUT.id == "demo_out"


@pytest.mark.parametrize(
    ("name", "metal"),
    [
        *((name, "long") for name in ("indices", "index", "mode_indices", "counts", "pivots", "info", "xindices")),
        *((name, "T") for name in ("self", "indices2", "input")),
    ],
)
def test_index_tensors_hold_64_bit_integers(name: str, metal: str) -> None:
    (_, tensor) = launch(f"demo(Tensor {name}) -> Tensor").bound
    assert tensor.metal == metal


@pytest.mark.parametrize(
    ("type_", "metal", "host"),
    [
        ("int", "long", "int64_t"),
        ("SymInt", "long", "int64_t"),
        ("bool", "long", "int64_t"),
        ("float", "float", "float"),
        ("Scalar", "float", "float"),
    ],
)
def test_numbers_are_bound_as_metal_takes_them(type_: str, metal: str, host: str) -> None:
    assert launch(f"demo(Tensor self, {type_} x) -> Tensor").numbers == (BoundBuffer("x", metal, host=host),)


@pytest.mark.parametrize("type_", ["Tensor[]", "float[]", "Scalar[]", "Generator?", "Generator", "str", "Device"])
def test_arguments_without_a_buffer_are_left_to_the_author(type_: str) -> None:
    planned = launch(f"demo(Tensor self, {type_} x) -> Tensor")
    assert planned.left == ("x",)
    assert [buffer.name for buffer in planned.bound] == ["result", "self"]


@pytest.mark.parametrize(
    ("type_", "declared"),
    [
        ("Tensor?", ["device const T* x", "constant long& has_x"]),
        ("float?", ["constant float& x", "constant long& has_x"]),
        ("int[]", ["constant long* x"]),
        ("int[]?", ["constant long* x", "constant long& has_x"]),
        ("ScalarType?", []),
    ],
)
def test_optional_arguments_get_a_flag_and_lists_a_pointer(type_: str, declared: list[str]) -> None:
    planned = launch(f"demo(Tensor self, {type_} x) -> Tensor")
    assert planned.left == ()
    assert [b.declaration for b in planned.bound if b.name.endswith("x")] == declared


# ---- what was observed

FREXP = launch_of(
    overload("frexp.out(Tensor self, *, Tensor(a!) mantissa, Tensor(b!) exponent) -> (Tensor(a!), Tensor(b!))"),
    KernelKind.UNARY,
    Observation(
        {"self": "T"},
        frozenset({"self"}),
        (ObservedTensor("T", "like self"), ObservedTensor("int32", "like self")),
        has_meta=True,
    ),
)
SOFTMAX = launch_of(
    overload("demo(Tensor self, Tensor mask, int? dim=None) -> Tensor"),
    KernelKind.REDUCTION,
    Observation(
        {"self": "T", "mask": "bool"}, frozenset({"self", "mask"}), (ObservedTensor("T", "like self"),), has_meta=True
    ),
)


def test_each_output_has_the_dtype_that_was_seen() -> None:
    assert [buffer.declaration for buffer in FREXP.outputs] == ["device T* mantissa", "device int* exponent"]
    assert "[None, torch.int32]" in PythonHost(FREXP).prepared[0]


def test_masks_are_bool_and_row_major_like_their_tensors() -> None:
    assert [buffer.metal for buffer in SOFTMAX.inputs] == ["T", "bool"]
    assert SOFTMAX.in_rows == ("self", "mask", "result")
    assert PythonHost(SOFTMAX).threads == "self_dense.shape[0]"
    assert "result_dense = torch.empty_like(self_dense)" in PythonHost(SOFTMAX).prepared
    assert PythonHost(SOFTMAX).finished == ["result.copy_(from_rows(result_dense, result.shape, dim))"]
    assert AtenHost(SOFTMAX).threads == "self_dense.size(0)"


def test_words_that_metal_keeps_get_an_underscore() -> None:
    assert [buffer.name for buffer in MAKES.numbers] == ["n", "half_"]
    assert [MAKES.argument(buffer) for buffer in MAKES.numbers] == ["n", "half"]
    for word in ("half", "float", "long", "device", "constant", "kernel", "thread", "default"):
        assert launch(f"demo(Tensor {word}) -> Tensor").inputs[0].name == f"{word}_"
    assert OUT.argument(OUT.numbers[0]) == "a"


def test_results_are_named_by_the_schema_or_by_number() -> None:
    assert launch("demo(Tensor self) -> Tensor").results == (Result("result", "T"),)
    assert launch("demo(Tensor self) -> (Tensor, Tensor)").results == (Result("result0", "T"), Result("result1", "T"))
    assert launch("demo(Tensor self) -> Tensor self").results == (Result("self_", "T"),)
    assert launch("demo(Tensor self) -> (Tensor, int)").results == ()
    assert MUTABLE.results == (Result("result", "T"),)
    assert IN_PLACE.results == ()


def test_thirty_buffers_are_bound_at_most() -> None:
    """The last of 31 is the number of threads."""
    names = ", ".join(f"Tensor t{number}" for number in range(40))
    assert len(launch(f"demo({names}) -> Tensor").bound) == 30


def test_the_tensor_that_chooses_the_instantiation() -> None:
    assert OUT.first_tensor == "out"
    assert launch("demo(Tensor index, Tensor self) -> int").first_tensor == "self"
    assert launch("demo(Tensor index) -> int").first_tensor == "index"
    assert launch("demo(int n) -> int").first_tensor == ""


@pytest.mark.parametrize(
    ("schema", "kind", "served"),
    [
        ("d.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", KernelKind.UNARY, True),
        ("d.out(Tensor self, Tensor other, Scalar s, *, Tensor(a!) out) -> Tensor(a!)", KernelKind.BINARY, True),
        ("d.out(Tensor a, Tensor b, Tensor c, *, Tensor(a!) out) -> Tensor(a!)", KernelKind.TERNARY, False),
        ("d.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", KernelKind.REDUCTION, False),
        ("d(Tensor self) -> Tensor", KernelKind.UNARY, False),
        ("d.out(Tensor self, Tensor? w, *, Tensor(a!) out) -> Tensor(a!)", KernelKind.UNARY, False),
        ("d.out(Tensor self, *, Tensor(a!) x, Tensor(b!) y) -> (Tensor(a!), Tensor(b!))", KernelKind.UNARY, False),
        ("d.out(Tensor self, Tensor index, *, Tensor(a!) out) -> Tensor(a!)", KernelKind.BINARY, False),
        ("d.out(int n, *, Tensor(a!) out) -> Tensor(a!)", KernelKind.UNARY, False),
    ],
)
def test_is_floating_elementwise(schema: str, kind: KernelKind, served: bool) -> None:
    assert launch(schema, kind).is_floating_elementwise is served


# ---- Python


@pytest.mark.parametrize(
    ("declared", "written"),
    [
        ("bool x=True", "bool = True"),
        ("bool x=False", "bool = False"),
        ("int x=-1", "int = -1"),
        ("int[2] x=1", "Sequence[int] = (1, 1,)"),
        ("int[2]? x=-1", "Sequence[int] | None = (-1, -1,)"),
        ("int[] x=1", "Sequence[int] = (1,)"),
        ("int[1] x=[]", "Sequence[int] = ()"),
        ("int[2] x=[0,1]", "Sequence[int] = (0,1,)"),
        ("int x=Mean", "int = 1"),
        ("SymInt x", "int"),
        ("str x='none'", "str = 'none'"),
        ("Tensor[] x", "Sequence[torch.Tensor]"),
        ("Tensor? x=None", "torch.Tensor | None = None"),
        ("ScalarType x=float", "torch.dtype = torch.float"),
        ("ScalarType x=long", "torch.dtype = torch.long"),
        ("Layout x=strided", "torch.layout = torch.strided"),
        ("Device x", "torch.device"),
        ("Generator x", "torch.Generator"),
        ("MemoryFormat x=contiguous_format", "torch.memory_format = torch.contiguous_format"),
        ("Storage x", "object"),
    ],
)
def test_types_and_defaults_in_python(declared: str, written: str) -> None:
    assert PythonHost(launch(f"demo(Tensor self, {declared}) -> Tensor")).parameters[1] == f"x: {written}"


# ---- every language


def test_without_an_input_a_result_is_empty_on_the_device() -> None:
    (result,) = MAKES.results
    assert 'result = torch.empty(0, device="mps")' in PythonHost(MAKES).prepared
    assert AtenHost(MAKES).allocated(result) == "at::empty({0}, at::TensorOptions().device(at::kMPS))"


def test_results_are_allocated_by_their_dimensions_where_those_are_known() -> None:
    seen = Observation(
        {"self": "T"}, frozenset({"self"}), (ObservedTensor("T", "", (Size("pairs", "self", 0),)),), False
    )
    pairs = launch_of(overload("demo(Tensor self) -> Tensor"), KernelKind.REDUCTION, seen)
    line = "const std::vector<int64_t> result_shape{self.size(0) * (self.size(0) - 1) / 2};"
    for host in (AtenHost(pairs), UpstreamHost(pairs)):
        assert host.prepared[0] == line
        assert "result_shape, self" in host.prepared[1] or "(self, result_shape" in host.prepared[1]
    shape = "(self.shape[0] * (self.shape[0] - 1) // 2,)"
    assert f"result = torch.empty({shape}, dtype=self.dtype, device=self.device)" in PythonHost(pairs).prepared


def test_outputs_are_resized_by_leading_dimensions_and_a_list() -> None:
    sizes = (Size("leading", "self", 2), Size("item", "size", 0), Size("count", "self"), Size("number", "n"))
    seen = Observation({"self": "T"}, frozenset({"self"}), (ObservedTensor("T", "", sizes),), has_meta=False)
    schema = "demo.out(Tensor self, int[1] size, int n, *, Tensor(a!) out) -> Tensor(a!)"
    pooled = launch_of(overload(schema), KernelKind.POOLING, seen)
    assert UpstreamHost(pooled).prepared[:3] == [
        "std::vector<int64_t> out_shape(self.sizes().begin(), self.sizes().end() - 2);",
        "out_shape.insert(out_shape.end(), {size[0], self.numel(), n});",
        "resize_output(out, out_shape);",
    ]
    assert not any("out_shape" in line for line in UpstreamHost(pooled, shaped=True).prepared)


LOSS = launch_of(
    overload("demo.out(Tensor self, Tensor target, int reduction=Mean, *, Tensor(a!) out) -> Tensor(a!)"),
    KernelKind.REDUCTION,
    Observation(
        {"self": "T", "target": "int64"},
        frozenset({"self"}),
        (ObservedTensor("T", "like target", is_loss=True),),
        has_meta=True,
    ),
)


def test_a_loss_is_one_number_unless_it_is_wanted_for_each() -> None:
    shape = "reduction == at::Reduction::None ? IntArrayRef(target.sizes()) : IntArrayRef()"
    assert UpstreamHost(LOSS).prepared[0] == f"resize_output(out, {shape});"
    assert (
        AtenHost(LOSS).prepared[0].startswith("at::native::resize_output(out, reduction == at::Reduction::None ? at::")
    )
    assert not LOSS.is_one_row
    two = replace(LOSS, bound=(LOSS.bound[0], BoundBuffer("marks", "T", written=True), *LOSS.bound[1:]))
    results = (ObservedTensor("T", "one"), ObservedTensor("T", "like self"))
    seen = replace(two.observation, results=results) if two.observation else None
    assert not replace(two, observation=seen).thread_per_row, "the first output says what a thread writes"
    assert not LOSS.thread_per_row
    functional = launch_of(
        overload("demo(Tensor self, Tensor target, int reduction=Mean) -> Tensor"),
        KernelKind.REDUCTION,
        replace(LOSS.observation, has_meta=False) if LOSS.observation else None,
    )
    shape = "target.shape if reduction == 0 else ()"
    assert f"result = torch.empty({shape}, dtype=self.dtype, device=self.device)" in PythonHost(functional).prepared


def test_threads_and_windows_follow_from_rows_and_bound_sizes() -> None:
    assert MODE.thread_per_row, "its outputs have unknown shapes, but it works along dim"
    assert not OUT.thread_per_row
    assert [LOSS.has_bound_sizes(buffer) for buffer in LOSS.tensors] == [False, True, True]
    assert launch("adaptive_max_pool2d(Tensor self, int[2] size) -> Tensor", KernelKind.POOLING).windows is not None
    assert launch("adaptive_max_pool2d(int n) -> Tensor", KernelKind.POOLING).windows is None


def test_python_resizes_outputs_where_no_meta_kernel_does() -> None:
    seen = replace(LOSS.observation, has_meta=False) if LOSS.observation else None
    host = PythonHost(replace(LOSS, observation=seen))
    assert host.prepared[0] == "resize_output(out, target.shape if reduction == 0 else ())"
    assert host.runtime["outputs"] == ["contiguous_output", "finish", "resize_output"]


def test_an_output_with_another_dtype_is_checked() -> None:
    check = 'TORCH_CHECK(exponent.scalar_type() == at::kInt, "frexp: expected exponent of dtype ", at::kInt, '
    assert any(line.startswith(check) for line in AtenHost(FREXP).prepared)
    assert not any("mantissa.scalar_type() == at::k" in line for line in AtenHost(FREXP).prepared)
    assert UpstreamHost(FREXP).prepared[1].startswith("TORCH_CHECK(exponent.scalar_type() == kInt,\n")
    assert not any(line.endswith("\n      ") for line in UpstreamHost(FREXP).prepared)
    assert not any("TORCH_CHECK" in line for line in UpstreamHost(FREXP, shaped=True).prepared)


# ---- Objective-C++


def test_inputs_are_broadcast_and_outputs_of_another_dtype_are_copied() -> None:
    seen = Observation(
        dict.fromkeys(("self", "a", "b"), "T"),
        frozenset({"self", "a", "b"}),
        (ObservedTensor("T", "broadcast"),),
        has_meta=False,
    )
    three = launch_of(overload("demo(Tensor self, Tensor a, Tensor b) -> Tensor"), KernelKind.TERNARY, seen)
    assert AtenHost(three).prepared == [
        "at::Tensor result = at::empty("
        "at::infer_size(at::infer_size(self.sizes(), a.sizes()), b.sizes()), self.options());",
        *(
            f"const at::Tensor {name}_dense = {name}.expand(result.sizes()).contiguous();"
            for name in ("self", "a", "b")
        ),
        "const at::Tensor result_dense = result;",
    ]
    assert AtenHost(FREXP).prepared[-3:] == [
        "const at::Tensor self_dense = self.contiguous();",
        "const at::Tensor mantissa_dense = mantissa.is_contiguous() && mantissa.scalar_type() == self.scalar_type() ? "
        "mantissa : at::empty(mantissa.sizes(), self.options());",
        "const at::Tensor exponent_dense = exponent.is_contiguous() ? exponent : "
        "at::empty(exponent.sizes(), exponent.options());",
    ]
    assert "const int64_t row_length = self_dense.size(1);" in AtenHost(SOFTMAX).prepared


def test_upstream_brings_functions_for_a_dimension_that_may_be_left_out() -> None:
    assert UpstreamHost(SOFTMAX).threads == "self_dense.size(0)"
    assert "const Tensor self_dense = rows_of(self, dims(dim));" in UpstreamHost(SOFTMAX).prepared


def test_upstream_breaks_long_lines() -> None:
    names = [f"argument_number_{number}" for number in range(8)]
    many = launch(f"demo({', '.join(f'Tensor {name}' for name in names)}) -> Tensor")
    assert UpstreamHost(many).arguments.startswith("encoder,\n                    result_dense,\n")
    assert UpstreamHost(OUT).arguments.startswith("encoder, out_dense, self_dense, ")
    (_, dense) = UpstreamHost(launch(f"d.out(Tensor {names[0]}, *, Tensor(a!) {names[1]}) -> Tensor(a!)")).prepared
    assert [line.strip()[:5] for line in dense.splitlines()] == ["const", "argum", "? arg", ": at:"]


@pytest.mark.parametrize(
    ("head", "written"),
    [
        (
            "::std::tuple<at::Tensor,at::Tensor> mode_mps(const at::Tensor & self, int64_t dim)",
            "std::tuple<Tensor, Tensor> mode_mps(const Tensor& self, int64_t dim)",
        ),
        (
            "TORCH_IMPL_FUNC(a_mps)(const at::Tensor & self, at::IntArrayRef output_size)",
            "TORCH_IMPL_FUNC(a_mps)\n(const Tensor& self, IntArrayRef output_size)",
        ),
        (
            f"at::Tensor f(const ::std::optional<at::Tensor> & {'a' * 60}, ::std::array<bool,3> {'b' * 40})",
            f"Tensor f(const std::optional<Tensor>& {'a' * 60},\n         std::array<bool, 3> {'b' * 40})",
        ),
    ],
)
def test_heads_inside_of_at_native(head: str, written: str) -> None:
    assert in_at_native(head) == written


def test_signatures_have_plain_integers() -> None:
    signature = AtenHost(launch("demo(Tensor self, SymInt n, SymInt[] s, Tensor? w=None) -> Tensor")).signature
    assert [(parameter.name, parameter.type) for parameter in signature.parameters] == [
        ("self", "const at::Tensor &"),
        ("n", "int64_t"),
        ("s", "at::IntArrayRef"),
        ("w", "const ::std::optional<at::Tensor> &"),
    ]
    assert signature.returns == "at::Tensor"
    assert AtenHost(IN_PLACE).signature.parameters[0].type == "at::Tensor &"


@pytest.mark.parametrize(
    ("type_", "bindable"),
    [
        *((type_, True) for type_ in ("Tensor", "int", "SymInt", "float", "bool", "Scalar", "str", "Device", "Layout")),
        *((type_, True) for type_ in ("MemoryFormat", "Generator", "Generator?", "Tensor?", "int[]", "SymInt[]?")),
        *((type_, False) for type_ in ("Tensor[]", "float[]", "ScalarType", "ScalarType?", "Storage")),
    ],
)
def test_bindable_types(type_: str, bindable: bool) -> None:
    assert AtenHost(launch(f"demo(Tensor self, {type_} x) -> Tensor")).bindable is bindable


# ---- arguments that are one of a few


WORD = launch("segment_reduce(Tensor data, str reduce, *, int axis=0) -> Tensor", KernelKind.REDUCTION)
NUMBERS = '{{"max", 0}, {"amax", 0}, {"mean", 1}, {"min", 2}, {"amin", 2}, {"sum", 3}, {"prod", 4}}'


def test_a_word_is_bound_as_its_number_and_its_names_are_known() -> None:
    (reduce,) = WORD.words
    assert (reduce.declaration, WORD.left) == ("constant long& reduce", ())
    assert reduce.choices == REDUCTIONS
    assert [buffer.name for buffer in WORD.numbers] == ["reduce", "axis"]
    numbers = '{"max": 0, "amax": 0, "mean": 1, "min": 2, "amin": 2, "sum": 3, "prod": 4}'
    assert PythonHost(WORD).prepared[0].split("\n        ") == [
        "reduce_number = number_of(",
        f'"reduce", reduce, {numbers}\n    )',
    ]
    assert PythonHost(WORD).runtime["operands"] == ["number_of"]
    assert AtenHost(WORD).prepared[0] == f'const int64_t reduce_number = number_of("reduce", reduce, {NUMBERS});'
    for host in (PythonHost(WORD), AtenHost(WORD)):
        assert host.bound[2] == "reduce_number"


def test_upstream_asks_torchs_own_enum_of_reductions_and_knows_other_words_itself() -> None:
    line = "const int64_t reduce_number = static_cast<int64_t>(get_reduction_enum(reduce));"
    assert UpstreamHost(WORD).prepared[0] == line
    other = launch('_linalg_eigh(Tensor A, str UPLO="L", bool compute_v=True) -> Tensor', KernelKind.LINALG)
    line = 'const int64_t UPLO_number = number_of("UPLO", UPLO, {{"L", 0}, {"l", 0}, {"U", 1}, {"u", 1}});'
    assert UpstreamHost(other).prepared[0] == line


def test_a_word_that_may_be_left_out_says_whether_it_is_there() -> None:
    solved = launch("linalg_lstsq(Tensor self, Tensor b, *, str? driver=None) -> Tensor", KernelKind.LINALG)
    assert [buffer.name for buffer in solved.bound if buffer.host][:2] == ["driver", "has_driver"]


def test_numbers_of_enumerations_are_bound_unchanged() -> None:
    (reduction,) = LOSS.numbers
    assert (reduction.is_word, reduction.choices) == (False, (("none",), ("mean",), ("sum",)))
    assert "int(reduction)" in PythonHost(LOSS).bound


# ---- factors of matrices


FACTORS = launch_of(
    overload("linalg_demo(Tensor A, bool full, bool factors) -> (Tensor U, Tensor S)"),
    KernelKind.LINALG,
    Observation(
        {"A": "T"},
        frozenset({"A"}),
        (
            ObservedTensor(
                "T",
                "",
                (Size("leading", "A", 1), Size("size", "A", -2, "full", Size("lesser", "A"))),
                requested_by="factors",
            ),
            ObservedTensor("T", "", (Size("leading", "A"),), requested_by="factors"),
        ),
        has_meta=False,
    ),
)


def test_a_dimension_that_depends_on_a_flag_and_a_result_that_is_not_requested() -> None:
    shape = "(*A.shape[: A.dim() - 1], A.shape[-2] if full else min(A.shape[-2:]),)"
    lines = PythonHost(FACTORS).prepared
    assert f"U = torch.empty({shape} if factors else (0,), dtype=A.dtype, device=A.device)" in lines
    assert "S = torch.empty((*A.shape,) if factors else (0,), dtype=A.dtype, device=A.device)" in lines
    for host in (AtenHost(FACTORS), UpstreamHost(FACTORS)):
        assert host.prepared[:3] == [
            "std::vector<int64_t> U_shape(A.sizes().begin(), A.sizes().end() - std::min<int64_t>(A.dim(), 1));",
            "U_shape.insert(U_shape.end(), {full ? A.size(-2) : std::min<int64_t>(A.size(-2), A.size(-1))});",
            "if (!factors) { U_shape.assign(1, 0); }",
        ]
        assert "std::vector<int64_t> S_shape(A.sizes().begin(), A.sizes().end());" in host.prepared


def test_a_factorisation_has_a_thread_for_each_matrix_and_a_product_one_for_each_element() -> None:
    assert FACTORS.thread_per_matrix
    assert PythonHost(FACTORS).threads == "matrix_count(A)"
    assert AtenHost(FACTORS, "mps_support::").threads == "mps_support::matrix_count(A.sizes())"
    product = launch("_int_mm(Tensor self, Tensor mat2) -> Tensor", KernelKind.LINALG)
    assert not product.thread_per_matrix
    assert PythonHost(product).threads == "result.numel()"


def test_the_dtype_is_that_of_the_first_argument_even_where_a_later_one_is_written() -> None:
    mutable = launch("demo(Tensor self, Tensor(a!) running) -> Tensor")
    assert mutable.source is not None
    assert mutable.source.name == "self"


# ---- a functional form that calls its out form

TWO_SEEN = Observation(
    {"self": "T"},
    frozenset({"self"}),
    (ObservedTensor("T", "like self"), ObservedTensor("int64", "reduced")),
    has_meta=False,
)
TWO_OUT = launch_of(
    overload(
        "demo.out(Tensor self, int dim, *, float eps=0.5, Tensor(a!) one, Tensor(b!) two) -> (Tensor(a!), Tensor(b!))"
    ),
    KernelKind.REDUCTION,
    TWO_SEEN,
)
TWO = launch_of(
    overload("demo(Tensor self, int dim, *, float eps=0.5) -> (Tensor values, Tensor indices)"),
    KernelKind.REDUCTION,
    TWO_SEEN,
)


def test_an_out_form_serves_the_functional_form_with_the_same_arguments() -> None:
    assert TWO_OUT.can_serve(TWO)
    assert not TWO.can_serve(TWO_OUT)
    other = launch("demo(Tensor self, int dim, *, bool eps=True) -> (Tensor values, Tensor indices)")
    assert not TWO_OUT.can_serve(other)
    # Without a shape an output that is still empty would stay so.
    unseen = replace(TWO_SEEN, results=(TWO_SEEN.results[0], ObservedTensor("int64", "")))
    assert not replace(TWO_OUT, observation=unseen).can_serve(TWO)
    assert not replace(TWO_OUT, observation=None).can_serve(TWO)


def test_integers_are_instantiated_where_the_dtype_follows_and_calls_showed_them() -> None:
    kept = replace(TWO_SEEN, integers=("int64", "uint8", "bool"))
    assert replace(TWO, observation=kept).integer_elements == ("long", "uchar", "bool")
    assert TWO.integer_elements == ()
    fixed = launch_of(overload("demo(Tensor indices) -> Tensor"), KernelKind.UNARY, kept)
    assert fixed.integer_elements == ()


def test_indices_and_values_of_a_pool_share_the_bound_shape() -> None:
    sizes = (Size("leading", "self", 1), Size("number", "n"))
    seen = Observation(
        {"self": "T"}, frozenset({"self"}), (ObservedTensor("T", "", sizes), ObservedTensor("int64", "", sizes)), True
    )
    schema = "demo_pool(Tensor self, int n) -> (Tensor values, Tensor indices)"
    pooled = launch_of(overload(schema), KernelKind.POOLING, seen)
    assert [buffer.name for buffer in pooled.bound if buffer.aspect] == ["values_sizes", "self_sizes"]
    unseen = launch_of(overload(schema), KernelKind.POOLING)
    assert [buffer.name for buffer in unseen.bound if buffer.aspect] == ["values_sizes", "indices_sizes", "self_sizes"]
