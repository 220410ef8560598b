"""A body that computes the operator's reference from nothing but what is bound, and tells what is bound wrongly."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from mpsmith.scaffold.launches.launch import Launch, launch_of
from mpsmith.scaffold.operators.kinds import KernelKind
from mpsmith.scaffold.operators.observing import observed
from mpsmith.scaffold.operators.source import source_of
from mpsmith.scaffold.reference_body import Findings, FunctorBody, ReferenceBody, WrongLaunchError

ROWS = [[1.0, 2.0, 2.0], [5.0, 5.0, 4.0]]


@pytest.fixture(scope="module")
def mode() -> Launch:
    (overload,) = source_of(None).operator("mode").kernels
    return launch_of(overload, KernelKind.SORT, observed(overload.name))


@pytest.fixture
def bound() -> dict[str, Any]:
    """What a host binds for two rows of three."""
    values, indices = torch.zeros(2), torch.zeros(2, dtype=torch.int64)
    return {"values": values, "indices": indices, "self": torch.tensor(ROWS).reshape(-1), "row_length": 3}


def run(launch: Launch, bound: dict[str, Any], threads: int = 2) -> Findings:
    findings = Findings()
    ReferenceBody(launch, findings)(*bound.values(), threads, threads=threads)
    return findings


class TestReferenceBody:
    def test_results_are_computed_from_the_buffers_alone(self, mode: Launch, bound: dict[str, Any]) -> None:
        findings = run(mode, bound)
        assert (findings.launches, findings.by_aspect) == (1, {})
        assert bound["values"].tolist() == [2.0, 5.0]
        assert bound["indices"].tolist() == torch.tensor(ROWS).mode().indices.tolist()

    @pytest.mark.parametrize(
        ("changed", "threads", "aspect", "message"),
        [
            ({"values": torch.zeros(3)}, 2, "shapes", "values has 3 elements, its result 2"),
            ({"values": torch.zeros(2, dtype=torch.float16)}, 2, "dtypes", "values is torch.float16"),
            ({"indices": torch.zeros(2, dtype=torch.int32)}, 2, "dtypes", r"indices, int32, is bound to long\*"),
            ({"self": torch.tensor(ROWS).t()}, 2, "shapes", r"self is bound with strides \(1, 3\)"),
            ({"self": 3}, 2, "arguments", "self is bound to int"),
            ({}, 6, "grid", "6 threads for 2 rows or elements"),
        ],
    )
    def test_what_is_bound_wrongly_is_told_by_its_aspect(
        self, mode: Launch, bound: dict[str, Any], changed: dict[str, Any], threads: int, aspect: str, message: str
    ) -> None:
        findings = Findings()
        with pytest.raises(WrongLaunchError, match=message):
            ReferenceBody(mode, findings)(*{**bound, **changed}.values(), threads, threads=threads)
        assert list(findings.by_aspect) == [aspect]

    def test_an_argument_that_is_not_bound_is_told(self, mode: Launch, bound: dict[str, Any]) -> None:
        with pytest.raises(WrongLaunchError, match="4 arguments are bound for 5 parameters"):
            ReferenceBody(mode, Findings())(*list(bound.values())[:-1], 2, threads=2)

    def test_a_word_arrives_as_its_number(self) -> None:
        (overload,) = source_of(None).operator("segment_reduce").kernels
        launch = launch_of(overload, KernelKind.REDUCTION, observed(overload.name))
        data, lengths = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([2, 1])
        values: dict[str, Any] = {buffer.name: 0 for buffer in launch.buffers}
        values |= {"result": torch.zeros(2), "data": data, "lengths": lengths, "indices": lengths, "offsets": lengths}
        values |= {"lengths_sizes": [1, 2], "data_sizes": [1, 3], "has_lengths": 1, "row_length": 3}
        totals = {}
        for word, number in next(iter(launch.words)).number_of.items():
            assert run(launch, values | {"reduce": number}).by_aspect == {}
            totals[word] = values["result"].tolist()
        assert totals == {
            "max": [2.0, 4.0],
            "amax": [2.0, 4.0],
            "mean": [1.5, 4.0],
            "min": [1.0, 4.0],
            "amin": [1.0, 4.0],
            "sum": [3.0, 4.0],
            "prod": [2.0, 4.0],
        }

    def test_a_factorisation_has_a_thread_for_each_matrix(self) -> None:
        (overload,) = source_of(None).operator("_linalg_eigh").kernels
        launch = launch_of(overload, KernelKind.LINALG, observed(overload.name))
        values: dict[str, Any] = {"eigenvalues": torch.zeros(2, 2), "eigenvectors": torch.zeros(0)}
        values |= {"A": torch.tensor([[[2.0, 0.0], [9.0, 1.0]]] * 2), "UPLO": 1, "compute_v": 0}
        values |= {"eigenvalues_sizes": [2, 2, 2], "eigenvectors_sizes": [1, 0], "A_sizes": [3, 2, 2, 2]}
        assert [buffer.name for buffer in launch.buffers] == list(values)
        assert run(launch, values).by_aspect == {}
        assert values["eigenvalues"].tolist() == [[1.0, 2.0]] * 2  # of the upper triangle; the lower one has a 9

    def test_what_a_mutable_form_writes_into_is_a_result_too(self) -> None:
        (overload,) = source_of(None).operator("_fused_moving_avg_obs_fq_helper").kernels
        launch = launch_of(overload, KernelKind.TERNARY, observed(overload.name))
        names = [buffer.name for buffer in launch.outputs]
        assert names == ["output", "mask", "running_min", "running_max", "scale", "zero_point"]
        made = {"output": torch.zeros(2), "mask": torch.zeros(2, dtype=torch.bool)}
        written = {name: torch.ones(1) for name in names[2:5]} | {"zero_point": torch.ones(1, dtype=torch.int32)}
        read = {"self": torch.tensor([-1.0, 3.0]), **{n: torch.ones(1) for n in ("observer_on", "fake_quant_on")}}
        values: dict[str, Any] = {buffer.name: 0 for buffer in launch.buffers} | made | written | read
        values |= {name: [1, tensor.numel()] for name, tensor in (written | read).items() for name in [f"{name}_sizes"]}
        values |= {"averaging_const": 0.5, "quant_max": 255}
        assert run(launch, values).by_aspect == {}
        assert (written["running_min"].item(), written["running_max"].item()) == (0.0, 2.0)


class TestFunctorBody:
    def test_layouts_are_the_kernels_own_business(self) -> None:
        (overload,) = source_of(None).operator("heaviside").kernels
        launch = launch_of(overload, KernelKind.BINARY, observed(overload.name))
        out, given, values = torch.zeros(3, 2), torch.tensor([[-1.0, 0.0, 2.0], [0.0, 1.0, -3.0]]).t(), torch.ones(3, 2)
        findings = Findings()
        FunctorBody(launch, findings)(out, given, values, [], threads=6)
        assert findings.launches == 1
        assert torch.equal(out, torch.heaviside(given, values))
