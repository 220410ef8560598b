"""Finds the predictions that a wrong case fits, while its tensors are in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext

import torch
from torch import Tensor

from ...model.case import Case
from ...model.verdicts import ROUNDING, TOGETHER
from .. import judge
from ..agreement import Comparison
from ..arguments import Argument, compare_metadata, storage_of
from ..compare import CONDITION, TOLERANCES, Agreement, Difference, Reference, on_cpu
from ..execution import Execution, execute, gradients
from ..judge import Trial
from ..reference import Position, WideArgument, WideRuns
from ..refusals import OUT_OF_MEMORY
from ..transfer import move
from .prediction import Calls, ModelError, Prediction, Ulp
from .subnormals import subnormals_flushed

# Runs of a model with its intermediate results moved by one ULP, and more with the cotangents moved, too.
MOVED_RUNS = 6
COTANGENT_RUNS = 2

# The comparisons so far, by the identity of the results. They keep the results alive, so that no identity is reused.
Comparisons = dict[Hashable, tuple[Agreement | Difference, Tensor, Tensor]]
# By whether subnormal numbers are flushed, and by the run's number; None where it raises. Models that say nothing about
# the calls of a case, because of their dtypes or sizes, share theirs.
Runs = dict[tuple[bool, int], Execution | None]
# Whether a result of the device that has this difference from the CPU's is as predicted.
Accepts = Callable[[Tensor, Tensor, Position, Difference], bool]


def fitting_predictions(trial: Trial, predictions: Sequence[Prediction]) -> dict[str, float]:
    """The predictions that explain every differing element of a judged case, in all outputs, gradients and arguments.

    Args:
        trial: the trial of a case whose values differ.
        predictions: the models to try.

    Returns:
        The names; for `ROUNDING` with the largest error in units of the tolerance, else with 0. If only several models
        together are enough, their names joined by `TOGETHER`: one such set for each model that fits an element.
    """
    fits: dict[str, float] = {}
    comparisons: Comparisons = {}
    error = _rounding_error(trial, comparisons)
    if error is not None:
        fits[ROUNDING] = error
    called = _called(trial)
    candidates = [prediction for prediction in predictions if prediction.applies_to(called)]
    explaining = _Explaining(trial, comparisons)
    fits |= {prediction.name: 0.0 for prediction in candidates if explaining.explain([prediction])}
    if not fits.keys() - {ROUNDING} and len(candidates) > 1 and explaining.explain(candidates):
        fitted = [prediction for prediction in candidates if prediction.name in explaining.fitted]
        for kept in fitted:
            fits[TOGETHER.join(prediction.name for prediction in explaining.needed(fitted, kept))] = 0.0
    return fits


class _Explaining:
    """Decides whether predictions together explain a case. Each model's runs are made once and shared.

    Attributes:
        fitted: the names of predictions that fit at least one differing element; others are never needed.
    """

    def __init__(self, trial: Trial, comparisons: Comparisons) -> None:
        self._trial = trial
        self._comparisons = comparisons
        self._models: dict[str, ModelledRuns] = {}
        self._unmodelled: Runs = {}
        self.fitted: set[str] = set()

    def needed(self, predictions: list[Prediction], kept: Prediction) -> list[Prediction]:
        """Return the predictions without redundant ones; `kept` is the last one whose removal is tried."""
        needed = list(predictions)
        for prediction in sorted(predictions, key=lambda candidate: candidate is kept):
            others = [other for other in needed if other is not prediction]
            if self.explain(others):
                needed = others
        return needed

    def explain(self, predictions: Sequence[Prediction]) -> bool:
        """Whether each differing element fits one of the predictions."""

        def accepts(actual: Tensor, expected: Tensor, place: Position, difference: Difference) -> bool:
            if difference.wrong is None:
                if actual.shape == expected.shape and actual.dtype is expected.dtype:
                    return False
                formed = {
                    candidate.name
                    for candidate in predictions
                    if self._models[candidate.name].has_form_of(actual, place)
                }
                self.fitted |= formed
                return bool(formed)
            left = difference.wrong.clone()
            for prediction in predictions:
                try:
                    fits = self._models[prediction.name].fits(actual, expected, place, difference.wrong)
                except Exception as error:
                    what = str(error) if isinstance(error, ModelError) else f"raises {error!r}"
                    raise ModelError(f"the model {prediction.name!r} of {actual.dtype} {what}") from error
                if bool((fits & difference.wrong).any()):
                    self.fitted.add(prediction.name)
                left &= ~fits
            return not bool(left.any())

        def make(case: Case, wide: WideRuns, cotangents: list[Tensor]) -> Comparison:
            for prediction in predictions:
                self._models.setdefault(
                    prediction.name, ModelledRuns(self._trial, case, prediction, cotangents, self._unmodelled)
                )
            return ComparisonWithPredictions(case, wide, accepts, self._comparisons, runs)

        def runs() -> list[Execution]:
            made = (self._models[prediction.name]._execution(False, 0) for prediction in predictions)
            return [execution for execution in made if execution is not None]

        return self._trial.compared_by(make)


def _rounding_error(trial: Trial, comparisons: Comparisons) -> float | None:
    """The largest error in units of the tolerance; None if anything but finite values differs."""
    errors: list[float] = []

    def accepts(actual: Tensor, expected: Tensor, place: Position, difference: Difference) -> bool:
        if difference.wrong is None or difference.max_error is None:
            return False
        wide = place.value()
        if wide is None or wide.shape != expected.shape:
            wide = expected  # as `compare` does without a float64 reference
        errors.append(difference.max_error)
        finite = on_cpu(actual).isfinite() & on_cpu(wide).isfinite()
        return bool((finite | ~difference.wrong).all())

    def make(case: Case, wide: WideRuns, cotangents: list[Tensor]) -> Comparison:
        return ComparisonWithPredictions(case, wide, accepts, comparisons)

    return max(errors) if trial.compared_by(make) and errors else None


def _called(trial: Trial) -> set[str]:
    """The overloads that the case calls on the CPU, forward and backward."""
    calls = Calls({}, Ulp())

    def make(case: Case, wide: WideRuns, cotangents: list[Tensor]) -> Comparison:
        _run(trial, case, calls, cotangents, calls)
        return ComparisonWithPredictions(case, wide, lambda actual, expected, place, difference: False, {})

    trial.compared_by(make)
    return calls.names


class WideStorage(WideArgument):
    """The reference of an argument with its whole storage."""

    def of(self, run: Execution) -> Tensor | None:
        """The elements of the argument's storage after a run."""
        argument = super().of(run)
        return None if argument is None or argument.layout is not torch.strided else storage_of(argument)


class ComparisonWithPredictions(Comparison):
    """Compares as `Comparison` does, but accepts a difference if `accepts` says that it is as predicted.

    The strides of results and arguments may also be those of one of the models' runs.
    """

    def __init__(
        self,
        case: Case,
        wide: WideRuns,
        accepts: Accepts,
        comparisons: Comparisons,
        runs: Callable[[], list[Execution]] = list,
    ) -> None:
        super().__init__(case, wide, judge.DEVICE, random=False)
        self._accepts = accepts
        self._comparisons = comparisons
        self._runs = runs

    def _compare(self, actual: Tensor, expected: Tensor, wide: Reference, values: bool) -> Agreement | Difference:
        if not isinstance(wide, Position):
            return super()._compare(actual, expected, wide, values)
        key = id(actual), id(expected), type(wide), wide.position, values
        if key not in self._comparisons:
            self._comparisons[key] = super()._compare(actual, expected, wide, values), actual, expected
        agreement = self._comparisons[key][0]
        if isinstance(agreement, Difference):
            return Agreement(0.0) if self._accepts(actual, expected, wide, agreement) else agreement
        return agreement

    def _layouts(self, actual: Execution, expected: Execution) -> Difference | None:
        difference = super()._layouts(actual, expected)
        if difference is None or any(Comparison._layouts(self, actual, run) is None for run in self._runs()):
            return None
        return difference

    def _accepts_metadata(self, argument: Argument) -> bool:
        modelled = (argument._replace(cpus=run.tensors[argument.position]) for run in self._runs())
        return any(compare_metadata(of_a_model) is None for of_a_model in modelled)

    def _accepts_around(self, argument: Argument, mine: Tensor, cpus: Tensor, difference: Difference) -> bool:
        return self._accepts(mine, cpus, WideStorage(self._wide, argument.position), difference)


class ModelledRuns:
    """Runs of a case on the CPU with a model in place, each made when it is first needed."""

    def __init__(
        self, trial: Trial, case: Case, prediction: Prediction, cotangents: list[Tensor], unmodelled: Runs
    ) -> None:
        self._trial = trial
        self._case = case
        self._prediction = prediction
        self._cotangents = cotangents
        self._unmodelled = unmodelled
        self._runs: Runs = {}
        self._is_moved: dict[bool, bool] = {}  # by whether subnormal numbers are flushed

    def fits(self, actual: Tensor, expected: Tensor, place: Position, wrong: Tensor) -> Tensor:
        """Which of the wrong elements are as the model predicts in one of its runs, up to rounding.

        The model predicts nothing for elements that it leaves as the CPU has them. More runs can only add fitting
        elements, so the first ones are tried alone: often they are enough.
        """
        values, right = on_cpu(actual), on_cpu(expected)
        if self._prediction.where is not None:
            wide = place.value()
            exact = right if wide is None or wide.shape != right.shape else on_cpu(wide)
            return self._prediction.where(values, right, exact)
        fits = torch.zeros(values.shape, dtype=torch.bool)
        for first_alone in (True, False):
            for flush in (False, True):
                results = {
                    run: result
                    for run in ([0] if first_alone else self._numbers(flush))
                    if (result := self._result(flush, run, place)) is not None
                    and result.shape == values.shape
                    and result.dtype is values.dtype
                }
                if results:
                    fits |= self._near(values, right, results)
                if not bool((wrong & ~fits).any()):
                    return fits
        return fits

    def has_form_of(self, actual: Tensor, place: Position) -> bool:
        """Whether the model predicts the shape and dtype of a result that differ from the CPU's, and its values."""
        values, result = on_cpu(actual), self._result(False, 0, place)
        if self._prediction.where is not None or result is None:
            return False
        if result.shape != values.shape or result.dtype is not values.dtype:
            return False
        relative = TOLERANCES.get(values.dtype, (0.0, 0.0))[0]
        if not relative:
            return not self._prediction.counts_integers or values.equal(result)
        return torch.allclose(values, result, relative, relative, equal_nan=True)

    def _near(self, values: Tensor, right: Tensor, results: dict[int, Tensor]) -> Tensor:
        """Which values are near one of the results, given by the number of the run."""
        whole = values.is_complex()
        relative = TOLERANCES.get(values.dtype, (0.0, 0.0))[0]
        values, right, *parts = map(_in_parts, (values, right, *results.values()))
        # Zeros of other sign, where nothing else of the number differs.
        zeros = (values == 0) & (right == 0) & (values.signbit() != right.signbit())
        if whole:
            zeros &= (values == right).all(-1, keepdim=True)
        fits = torch.stack([_same(values, part) & ~_of_other_sign(zeros, values, part) for part in parts]).any(0)
        last = MOVED_RUNS if self._prediction.alternatives == 1 else max(results)
        saying = [part for run, part in zip(results, parts, strict=True) if run <= last]
        changed = torch.stack(
            [~_same(right, part) | _of_other_sign(zeros, right, part) for part in saying or parts]
        ).any(0)
        if self._prediction.nan_is_any_non_finite:
            undefined, lost = parts[0].isnan(), ~values.isfinite()
            if whole:  # one part of a complex number is enough
                undefined, lost = undefined.any(-1, keepdim=True), lost.any(-1, keepdim=True)
            fits |= undefined & lost
            changed |= undefined
        if values.is_floating_point():
            wide = torch.stack(parts).double()
            largest = wide.nan_to_num(-torch.inf, torch.inf, -torch.inf).amax(0)
            least = wide.nan_to_num(torch.inf, torch.inf, -torch.inf).amin(0)
            moves = (largest - least).nan_to_num(0.0, 0.0, 0.0) * (self._prediction.alternatives == 1)
            near = (values.double() - wide).abs() <= relative * wide.abs() + CONDITION * moves
            fits |= (near & wide.isfinite()).any(0) & values.isfinite() & ~zeros
        return fits.all(-1) & changed.any(-1) if whole else fits & changed

    def _numbers(self, flush: bool) -> Sequence[int]:
        """The numbers of the runs without those that would repeat another.

        Runs of a model that does not apply to the case, or moves no values, differ by their cotangents alone.
        """
        self._execution(flush, 0)
        last = range(MOVED_RUNS + 1, MOVED_RUNS + 1 + COTANGENT_RUNS)
        if self._prediction.alternatives > 1:
            return range(max(self._prediction.alternatives, last.stop))
        of_cotangents = last if self._cotangents else ()
        if self._runs is self._unmodelled:
            return (0, *of_cotangents)
        moved = range(1, MOVED_RUNS + 1) if self._is_moved[flush] else (1,) if self._prediction.without_calls else ()
        return (0, *moved, *of_cotangents)

    def _execution(self, flush: bool, run: int) -> Execution | None:
        if (flush, run) not in self._runs:
            prediction, moves = self._prediction, self._prediction.alternatives == 1
            calls = Calls(prediction.models, Ulp(run, moves=moves))
            # Some gradients, prod's among them, take another formula inside a dispatch mode.
            modelled = nullcontext() if prediction.without_calls and run == 1 else calls
            around = subnormals_flushed() if flush else nullcontext()
            with prediction.in_place():
                made = _run(self._trial, self._case, calls, self._cotangents, around, modelled)
            first = moves and not (prediction.without_calls or prediction.gradients) and (flush, run) == (False, 0)
            if first and made is not None and not calls.modelled:
                self._runs = self._unmodelled
            self._runs[flush, run] = made
            if run == 0:
                self._is_moved[flush] = calls.ulp.called
        return self._runs[flush, run]

    def _result(self, flush: bool, run: int, place: Position) -> Tensor | None:
        execution = self._execution(flush, run)
        result = None if execution is None else place.of(execution)
        return None if result is None else on_cpu(result)


def _run(
    trial: Trial, case: Case, calls: Calls, cotangents: list[Tensor], *contexts: AbstractContextManager[object]
) -> Execution | None:
    """Run the case and its gradients on the CPU inside some contexts; None if that raises.

    An operator may refuse what a model returned, and torch refuses some functions inside a dispatch mode.
    """
    inputs = move(case.args, case.kwargs, "cpu")
    trial.seed_cpu()
    moved = calls.ulp if calls.ulp.run > MOVED_RUNS else Ulp()
    try:
        with ExitStack() as stack:
            for context in contexts:
                stack.enter_context(context)
            execution = execute(case, inputs)
            if cotangents:
                execution.gradients = gradients(execution, [moved(cotangent).clone() for cotangent in cotangents])
    except ModelError:
        raise
    except Exception as error:
        if OUT_OF_MEMORY.search(str(error)):
            raise
        return None
    return execution


def _in_parts(values: Tensor) -> Tensor:
    """The real and the imaginary part in a new last dimension, if the values are complex."""
    return torch.view_as_real(values) if values.is_complex() else values


def _of_other_sign(zeros: Tensor, values: Tensor, predicted: Tensor) -> Tensor:
    return zeros & (values.signbit() != predicted.signbit())


def _same(values: Tensor, predicted: Tensor) -> Tensor:
    return (values == predicted) | (values.isnan() & predicted.isnan())
