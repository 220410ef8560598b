"""A macOS wheel's own host code computes: its kernels, and graphs of the stand-in for MPSGraph."""

import ctypes
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from mpsmith.audit.releases.wheel.libraries import host_files
from mpsmith.audit.releases.wheel.shipped import shipped_library
from mpsmith.simulator.air.library import AirLibrary
from mpsmith.simulator.errors import MachOError
from mpsmith.simulator.macho import HostProcess, arm64_command, kernel_requests
from mpsmith.simulator.macho.kernel_requests import KernelRequests
from mpsmith.simulator.macho.process import Computed, OperatorError
from mpsmith.simulator.macho.shared_memory import SharedMemory, tensors

pytestmark = pytest.mark.network
RELEASE = "2.13.0"
LAYOUTS = {
    "contiguous": lambda: torch.linspace(-2, 3, 24).reshape(4, 6),
    "transposed": lambda: torch.linspace(-2, 3, 24).reshape(6, 4).t(),
    "sliced": lambda: torch.linspace(-2, 3, 96).reshape(8, 12)[::2, ::2],
    "offset": lambda: torch.linspace(-2, 3, 40)[5:29].reshape(4, 6),
    "expanded": lambda: torch.linspace(-2, 3, 6).expand(4, 6),
    "empty": lambda: torch.empty(0, 6),
    "0-dim": lambda: torch.tensor(1.5),
}


class OnMps(HostProcess):
    """Sends every tensor as one on mps: no simulated device is loaded here."""

    def compute(self, overload: str, *arguments: Any) -> Computed:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SharedMemory, "_placed_tensor", _as_if_on_mps)
            return super().compute(overload, *arguments)


_placed_tensor = SharedMemory._placed_tensor


def _as_if_on_mps(memory: SharedMemory, tensor: torch.Tensor) -> tuple[object, ...]:
    return 1, *_placed_tensor(memory, tensor)[1:]


def started() -> OnMps:
    try:
        arm64_command()
    except MachOError as error:
        pytest.skip(str(error))
    return OnMps(host_files(RELEASE), (26, 0), library=AirLibrary(shipped_library(RELEASE), RELEASE))


@pytest.fixture(scope="module")
def process() -> Iterator[HostProcess]:
    with started() as process:
        yield process


@pytest.mark.parametrize("layout", LAYOUTS)
def test_kernels_agree_with_the_reference(process: HostProcess, layout: str) -> None:
    values = LAYOUTS[layout]()
    exact, other = values.double(), torch.ones_like(values)
    for overload, arguments, expected in (
        ("add.Tensor", (values, other, 2), exact + 2),
        ("exp", (values,), exact.exp()),
        ("hypot", (values, other), exact.hypot(other.double())),
        (
            "sum.dim_IntList",
            (values, [-1] if values.dim() else [], False, None),
            exact.sum(-1) if values.dim() else exact,
        ),
        ("cumsum", (values, -1, None), exact.cumsum(-1)),
    ):
        computed = process.compute(f"aten::{overload}", *arguments)
        torch.testing.assert_close(computed.results[0].double(), expected, rtol=1e-5, atol=1e-6, msg=overload)
        assert computed.trace.launches or not values.numel() or overload == "cumsum"
        assert not computed.trace.graphs


@pytest.mark.parametrize("layout", LAYOUTS)
def test_graphs_agree_with_the_reference(process: HostProcess, layout: str) -> None:
    values = LAYOUTS[layout]()
    computed = process.compute("aten::_softmax", values, -1 if values.dim() else 0, False)
    torch.testing.assert_close(computed.results[0].double(), values.double().softmax(-1 if values.dim() else 0))
    assert computed.trace.graphs == (1 if values.numel() else 0)


def test_products_and_convolutions_compute(process: HostProcess) -> None:
    left, right = torch.randn(5, 7), torch.randn(3, 7).t()
    (product,) = process.compute("aten::mm", left, right).results
    torch.testing.assert_close(product.double(), left.double() @ right.double(), rtol=1e-5, atol=1e-5)
    whole = torch.arange(12).reshape(3, 4)
    assert torch.equal(process.compute("aten::mm", whole, whole.t()).results[0], whole @ whole.t())  # uint3 of 12 bytes
    image, weight = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)
    (convolved,) = process.compute("aten::_mps_convolution", image, weight, None, [1, 1], [1, 1], [1, 1], 1).results
    expected = torch.nn.functional.conv2d(image.double(), weight.double(), padding=1)
    torch.testing.assert_close(convolved.double(), expected, rtol=1e-4, atol=1e-4)


def on_cpu(process: HostProcess, overload: str, *arguments: object) -> list[torch.Tensor]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SharedMemory, "_placed_tensor", _placed_tensor)
        results = HostProcess.compute(process, f"aten::{overload}", *arguments).results
        return [result.clone() for result in results]


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_lapack_solves_systems(process: HostProcess, dtype: torch.dtype) -> None:
    computed = partial(on_cpu, process)
    generator = torch.Generator().manual_seed(5)  # other matrices may be near singular, where both are inaccurate
    matrix = torch.randn(4, 5, 5, dtype=dtype, generator=generator) + 3 * torch.eye(5, dtype=dtype)
    right = torch.randn(4, 5, 3, dtype=dtype, generator=generator)
    close = partial(torch.testing.assert_close, rtol=1e-4, atol=1e-4)
    factors, pivots, _ = computed("linalg_lu_factor_ex", matrix, True, False)
    close((factors, pivots), tuple(torch.linalg.lu_factor(matrix)))
    for left, adjoint in ((True, False), (True, True), (False, False), (False, True)):
        given = right if left else right.mT
        (solved,) = computed("linalg_lu_solve", factors, pivots, given, left, adjoint)
        close(solved, torch.linalg.lu_solve(factors, pivots, given, left=left, adjoint=adjoint))
    square = matrix @ matrix.mH
    for upper in (False, True):
        factor = computed("linalg_cholesky_ex", square, upper, False)[0]
        close(factor, torch.linalg.cholesky(square, upper=upper))
        close(square @ computed("cholesky_solve", right, factor, upper)[0], right)
        for unit in (False, True):
            (solved,) = computed("linalg_solve_triangular", factor, right, upper, True, unit)
            close(solved, torch.linalg.solve_triangular(factor, right, upper=upper, left=True, unitriangular=unit))
    assert computed("linalg_lu_factor_ex", torch.zeros(0, 0), True, False)[0].shape == (0, 0)
    assert computed("linalg_lu_factor_ex", torch.zeros(2, 2), True, False)[2].item() == 1
    with pytest.raises(OperatorError, match="sgeev_ of LAPACK is not simulated"):
        computed("linalg_eig", torch.eye(3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_requests, "_library_of_torch", object)  # it has no such function
        with pytest.raises(OperatorError, match="sgetrf_ of LAPACK is not simulated: this torch exports none"):
            computed("linalg_lu_factor_ex", torch.eye(3), True, False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_lapack_finds_eigenvalues_and_singular_values(process: HostProcess, dtype: torch.dtype) -> None:
    close = partial(torch.testing.assert_close, rtol=1e-4, atol=1e-4)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    generator = torch.Generator().manual_seed(5)
    whole = torch.randn(2, 3, 8, 12, dtype=dtype, generator=generator)
    given = {
        "contiguous": whole,
        "transposed": whole.mT,
        "sliced": whole[..., ::2, 1::3],
        "offset": whole[1, :, 2:5],
        "expanded": whole[0, 0].expand(2, 8, 12),
        "of rank 1": torch.tensor([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0]], dtype=dtype),
        "empty": whole[..., :0],
        "no batch": whole[:0],
    }
    for matrix in given.values():
        exact = matrix.to(wide)
        for full in (False, True):
            left, values, right = on_cpu(process, "_linalg_svd", matrix, full, True, None)
            close(values.double(), torch.linalg.svdvals(exact))
            count = values.shape[-1]
            close(((left[..., :count] * values.unsqueeze(-2)) @ right[..., :count, :]).to(wide), exact)
            for unitary in (left, right.mH):
                product = unitary.mH @ unitary
                close(product, torch.eye(product.shape[-1], dtype=dtype).expand_as(product))
        close(on_cpu(process, "_linalg_svd", matrix, False, False, None)[1].double(), torch.linalg.svdvals(exact))
        hermitian = matrix @ matrix.mH - 2 * torch.eye(matrix.shape[-2], dtype=dtype)
        for lower in ("L", "U"):
            values, vectors = on_cpu(process, "_linalg_eigh", hermitian, lower, True)
            close(values.double(), torch.linalg.eigvalsh(hermitian.to(wide)))
            close((vectors * values.unsqueeze(-2)) @ vectors.mH, hermitian)
            close(on_cpu(process, "_linalg_eigh", hermitian, lower, False)[0], values)
    with pytest.raises(OperatorError, match="failed to converge"):
        on_cpu(process, "_linalg_svd", torch.full((3, 3), float("nan"), dtype=dtype), False, True, None)


def test_empty_arguments_are_not_errors(process: HostProcess) -> None:
    empty = process.compute("aten::im2col", torch.empty(0, 3, 5, 4), [2, 2], [1, 1], [0, 0], [1, 1]).results[0]
    assert empty.shape == (0, 12, 12)
    arguments = torch.tensor(1.0), 0, torch.tensor([0]), torch.tensor(3.0)  # no sizes: bytes of length 0
    assert process.compute("aten::index_copy", *arguments).results[0].item() == 3


def test_written_tensors_are_copied_back(process: HostProcess) -> None:
    whole = torch.ones(4, 6)
    view = whole[:, 1::2]
    computed = process.compute("aten::zero_", view)
    assert whole.sum() == 12
    assert computed.written[0].stride() == view.stride()
    out = torch.empty(0)
    computed = process.compute("aten::add.out", whole, whole, 1, out)
    assert computed.written[0].shape == (4, 6)  # resized there
    assert torch.equal(computed.written[0], 2 * whole)


def test_zeros_are_behind_an_argument_in_memory_that_was_used_before(process: HostProcess) -> None:
    """A learning rate of two bytes, which the kernel reads as four: a subnormal number, where zeros follow."""
    rate, options = torch.tensor(0.5).bfloat16(), (0.9, 0.99, 0.0, 1e-6, False, False, None, None)
    for _ in range(3):
        process.compute("aten::add.Tensor", torch.ones(24), torch.ones(24), 1)
        lists = [[torch.full((2,), value)] for value in (1.0, 2.0, 3.0, 4.0)]
        process.compute("aten::_fused_adam_.tensor_lr", *lists, [], [torch.tensor(1.0)], rate, *options)
        assert lists[0][0].tolist() == [1, 1]
        assert lists[2][0].tolist() == pytest.approx([2.9, 2.9])


def test_graphs_of_earlier_calls_are_gone_when_the_caches_are_emptied(process: HostProcess) -> None:
    numbers = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), torch.tensor([5.0, 0.1])

    def addcmul(dtype: torch.dtype) -> list[float]:  # found_wrong: addcmul-into-another-dtype
        (result,) = process.compute("aten::addcmul.out", *numbers, 1, torch.zeros(2, dtype=dtype)).results
        return tensors(result).float().tolist()  # type: ignore[no-any-return]

    right = addcmul(torch.float32)
    process.empty_cache()
    addcmul(torch.float16)
    with pytest.raises(OperatorError, match="has type Half, and its place Float"):
        addcmul(torch.float32)
    process.empty_cache()
    assert addcmul(torch.float32) == right == pytest.approx([16.0, 2.4])


def test_memory_of_earlier_calls_is_released_when_the_caches_are_emptied(process: HostProcess) -> None:
    def megabytes() -> int:
        assert process._memory is not None
        return os.fstat(process._memory.file).st_blocks * 512 >> 20

    values = torch.linspace(-1, 1, 2**22)
    for _ in range(2):
        process.empty_cache()
        assert megabytes() < 4
        (result,) = process.compute("aten::add.Tensor", values, values, 1).results
        assert torch.equal(result, 2 * values)
        assert megabytes() >= 48


def test_a_killed_process_leaves_no_registration_of_openmp() -> None:
    with started() as process:
        name = Path(f"/dev/shm/__KMP_REGISTERED_LIB_{process._process.pid}")
        name.touch()  # of an earlier process of this number
        values = torch.linspace(-1, 1, 2**20)
        computed = process.compute("aten::softmax.int", values, 0, None)
        torch.testing.assert_close(tensors(computed.results[0]).sum().item(), 1.0, rtol=1e-3, atol=0.0)
        assert not name.exists()


def test_an_error_of_the_release_is_raised_and_the_process_goes_on(process: HostProcess) -> None:
    with pytest.raises(OperatorError, match="must match the size of tensor b"):
        process.compute("aten::add.Tensor", torch.ones(2), torch.ones(3), 1)
    with pytest.raises(OperatorError, match="Dimension out of range") as refused:
        process.compute("aten::cumsum", torch.ones(2), 7, None)
    assert refused.value.kind == "IndexError"
    with pytest.raises(OperatorError, match="index 5 is out of bounds") as reported:
        process.compute("aten::index.Tensor", torch.ones(2), [torch.tensor([5])])
    assert reported.value.kind == "AcceleratorError"
    assert process.compute("aten::neg", torch.ones(2)).results[0].tolist() == [-1, -1]


def test_arguments_of_every_kind_arrive(process: HostProcess) -> None:
    numbers, z = torch.tensor([-3.0, 5.0]), torch.tensor([1 + 2j, -1j])
    calls: list[tuple[str, tuple[object, ...], torch.Tensor]] = [
        ("mul.Scalar", (z, 2 - 3j), z * (2 - 3j)),
        ("div.Tensor_mode", (numbers, torch.tensor([2.0, 3.0]), "floor"), torch.tensor([-2.0, 1.0])),
        ("sum.dim_IntList", (numbers.expand(3, 2), [-1, 0], True, torch.int64), torch.tensor([[6]])),
        ("roll", (numbers, [-(2**40) - 1], [0]), numbers.flip(0)),
        ("mul.Tensor", (z.conj(), z), z.conj() * z),
        ("mul.Tensor", (z.conj().imag, numbers), z.conj().imag * numbers),
    ]
    for overload, arguments, expected in calls:
        (result,) = process.compute(f"aten::{overload}", *arguments).results
        torch.testing.assert_close(result, expected)


def test_swapped_bindings_and_a_smaller_grid_are_found() -> None:
    """Faults in the messages between host code and kernels change results."""
    from mpsmith.simulator.objc import bridge

    values = torch.arange(1, 25.0).reshape(4, 6)
    with started() as process:

        def result(overload: str, *arguments: object) -> torch.Tensor:
            output: torch.Tensor = process.compute(overload, *arguments).results[0].clone()
            return output

        difference = 3 * torch.ones(4, 6) - values
        assert torch.equal(result("aten::sub.Tensor", 3 * torch.ones(4, 6), values, 1), difference)
        answer = KernelRequests.answer

        def swapped(requests: KernelRequests, kind: str, request: bytes) -> bytes:
            if kind == "launch":
                rows = bytearray(request)
                first, size = 8 + ctypes.sizeof(bridge.MetalLaunch), ctypes.sizeof(bridge.MetalBinding)
                inputs = [rows[first + size * row + 8 : first + size * (row + 1)] for row in (1, 2)]
                for row, content in zip((2, 1), inputs, strict=True):
                    rows[first + size * row + 8 : first + size * (row + 1)] = content
                request = bytes(rows)
            return answer(requests, kind, request)

        def smaller(requests: KernelRequests, kind: str, request: bytes) -> bytes:
            if kind == "launch":
                launch = bridge.MetalLaunch.from_buffer_copy(request, 8)
                launch.grid[0] -= 1
                request = request[:8] + bytes(launch) + request[8 + len(bytes(launch)) :]
            return answer(requests, kind, request)

        for faulty in (swapped, smaller):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(KernelRequests, "answer", faulty)
                assert not torch.equal(result("aten::sub.Tensor", 3 * torch.ones(4, 6), values, 1), difference)
        assert torch.equal(result("aten::sub.Tensor", 3 * torch.ones(4, 6), values, 1), difference)
