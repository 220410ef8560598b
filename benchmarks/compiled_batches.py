"""An audit under torch.compile with eight operators a graph: what that would save against a graph for each.

Processor time of forward and backward, compilers included, once with kernels that were never compiled and once with all
of them in the cache. A batch in which one case is not plainly right has to be run again case by case, so that the share
of such cases decides: the last line takes it as an argument of the environment, 0.06 by default.
"""

import os
import tempfile

SIZE = 8
SHARE = float(os.environ.get("NOT_RIGHT", "0.06"))
OPERATORS = (
    *("sin", "exp", "nn.functional.gelu", "atan", "add", "where", "lerp", "clamp"),
    *("sum", "amax", "softmax", "var", "logsumexp", "mean", "cat", "index_select"),
)


def main() -> None:
    from mpsmith.audit.releases.surface.profiles import coverage_profile
    from mpsmith.simulator.opening import DeviceKind, open_device

    device = open_device(DeviceKind.SIMULATED, coverage_profile)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MPSMITH_CACHE"] = folder  # once the device is there, which is built into the cache
        _measured(device)


def _measured(device) -> None:
    from benchmarks._processor_time import processor_seconds
    from mpsmith.audit.compiled.judging import compiled_call, ready_to_compile

    cases = [_case(name) for name in OPERATORS]
    batches = [cases[at : at + SIZE] for at in range(0, len(cases), SIZE)]
    with ready_to_compile():
        _run(cases[:1])  # what the first compilation of a process imports
        for kernels in ("no kernel compiled yet", "all kernels in the cache"):
            one_by_one = processor_seconds(lambda: [_run([case]) for case in cases]) / len(cases)
            together = processor_seconds(lambda: [_run(batch) for batch in batches]) / len(cases)
            print(f"  {kernels}: {one_by_one:.3f} s a case by itself, {together:.3f} in a graph of {SIZE}")
    judged = processor_seconds(lambda: [compiled_call(case, device.recorder, 0, "benchmark") for case in cases])
    judged /= len(cases)
    split = 1 - (1 - SHARE) ** SIZE
    expected = judged - one_by_one + together + split * one_by_one
    beside = judged - one_by_one
    print(f"  a case of an audit, all kernels in the cache: {judged:.3f} s, {beside:.3f} of it beside its graphs")
    print(f"  with {SHARE:.0%} of the cases not right {split:.0%} of the batches run again: {expected:.3f} s a case")


def _case(name: str):
    """The first sample of an operator that has an element."""
    from mpsmith.audit.cases.sources import case_sources
    from mpsmith.audit.model.selection import Samples

    source = case_sources(())["opinfo"]
    key = next(key for key in source.groups() if (key.operator, key.dtype) == (name, "float32"))
    return next(iter(source.cases(key, Samples.QUICK)))


def _run(cases) -> None:
    """Compile one graph of these cases, forward and backward, and run it."""
    import torch

    from mpsmith.audit.compiled.call import traceable
    from mpsmith.audit.compiled.lowering import watching
    from mpsmith.audit.judging.transfer import move
    from mpsmith.audit.model.tensors_in import leaves

    inputs = [move(case.args, case.kwargs, "mps") for case in cases]
    calls = [traceable(case.call) for case in cases]

    def graph(inputs):
        return [call(*args, **kwargs) for call, (args, kwargs) in zip(calls, inputs, strict=True)]

    with watching():  # each graph as in a new process: headers that another one needed are not in its source
        found = leaves(torch.compile(graph)(inputs))
        wanted = [each for each in found if isinstance(each, torch.Tensor) and each.requires_grad]
        if wanted:
            torch.autograd.backward(wanted, [torch.ones_like(each) for each in wanted])


if __name__ == "__main__":
    main()
