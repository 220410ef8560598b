"""The libraries of a release's macOS wheel, run on Linux."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from mpsmith.audit.releases.wheel.libraries import host_files
from mpsmith.simulator.errors import MachOError
from mpsmith.simulator.macho import HostProcess, arm64_command
from mpsmith.simulator.macho.process import OperatorError

pytestmark = pytest.mark.network

RELEASES = ("2.6.0", "2.13.0")


@pytest.fixture(scope="module", params=RELEASES)
def process(request: pytest.FixtureRequest) -> Iterator[HostProcess]:
    try:
        arm64_command()
    except MachOError as error:
        pytest.skip(str(error))
    folder: Path = host_files(request.param)
    with HostProcess(folder) as process:
        yield process


def test_the_dispatcher_lists_operators_and_kernels(process: HostProcess) -> None:
    operators = process.operators()
    assert operators["aten::add.Tensor"].mps
    assert len(operators) > 3000
    assert sum(operator.cpu for operator in operators.values()) > 1000
    assert sum(operator.mps for operator in operators.values()) > 500


def test_cpu_kernels_compute(process: HostProcess) -> None:
    values = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(process.call("aten::add.Tensor", values, values, 2)[0], 3 * values)
    (soft,) = process.call("aten::softmax.int", values, 1, None)
    torch.testing.assert_close(soft, torch.softmax(values, 1))
    (joined,) = process.call("aten::cat", [values, values], 0)
    assert joined.shape == (4, 3)
    top, index = process.call("aten::topk", values, 2, 1, True, True)
    assert top.tolist() == [[2, 1], [5, 4]]
    assert index.tolist() == [[2, 1], [2, 1]]


def test_an_error_is_caught_and_the_process_goes_on(process: HostProcess) -> None:
    with pytest.raises(OperatorError, match="must match the size of tensor b"):
        process.call("aten::add.Tensor", torch.ones(2, 3), torch.ones(2, 4), 1)
    assert process.call("aten::sum", torch.ones(3), None)[0] == 3


def test_a_name_that_nothing_defines_ends_the_process() -> None:
    """BLAS is Apple's Accelerate, which is not here yet."""
    try:
        arm64_command()
    except MachOError as error:
        pytest.skip(str(error))
    with HostProcess(host_files("2.13.0")) as process, pytest.raises(MachOError, match="nothing here defines"):
        process.call("aten::mm", torch.ones(64, 64), torch.ones(64, 64))
