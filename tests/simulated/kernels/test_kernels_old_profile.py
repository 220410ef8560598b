"""The coverage of torch 2.0.1, each in a separate process: what fell back then runs on kernels after one import."""

from __future__ import annotations

import json
from pathlib import Path

from ..conftest import FreshPython

SEQUENTIAL = """
    import json, sys
    from pathlib import Path
    import torch
    from mpsmith.audit.releases.surface.profiles import coverage_profile
    from mpsmith.simulator import metal
    from mpsmith.simulator.device import loading as device

    device.load(coverage_profile("2.0.1"))
    metal.install()
    device.set_fallback_enabled(True)

    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(24, 16), torch.nn.Softshrink(0.1), torch.nn.Linear(16, 16), torch.nn.Softshrink(0.2),
        torch.nn.Linear(16, 4),
    ).to("mps")
    inputs = torch.randn(8, 24, device="mps")

    def step():
        model.zero_grad()
        device.reset_counters()
        output = model(inputs)
        output.square().sum().backward()
        fallbacks = {name: calls.fallback for name, calls in device.counters().items() if calls.fallback}
        return output.detach().cpu(), [p.grad.cpu() for p in model.parameters()], fallbacks

    before = step()
    import mpsmith.kernels as kernels
    after = step()
    torch.testing.assert_close(after[0], before[0], rtol=0, atol=0)
    for new, old in zip(after[1], before[1], strict=True):
        torch.testing.assert_close(new, old, rtol=0, atol=0)
    kernels.disable()
    last = step()
    print(json.dumps([before[2], after[2], last[2]]))
"""

REGISTRY = """\
aten::softshrink:
  status: implemented
  kernel: shrink
aten::softshrink_backward:
  status: implemented
  kernel: shrink
"""


def test_import_replaces_the_fallbacks_of_a_model(fresh_python: FreshPython, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(REGISTRY)
    done = fresh_python(SEQUENTIAL, MPSMITH_REGISTRY=str(tmp_path), MPSMITH_KERNELS=None)
    before, after, last = json.loads(done.stdout)
    assert before == {"aten::softshrink.out": 2, "aten::softshrink_backward.grad_input": 2}
    assert after == {}
    assert last == before


def test_environment_selects_kernels(fresh_python: FreshPython, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(REGISTRY)
    script = """
        from mpsmith.kernels.runtime.catalog import overrides
        overridden = {kernel.overload for kernel in overrides()}
        print(*(name for name in kernels.registered() if name not in overridden))
    """
    chosen = {
        None: "aten::softshrink.out aten::softshrink_backward.grad_input",
        "off": "",
        "aten::softshrink_backward": "aten::softshrink_backward.grad_input",
        "aten::mode.values": "aten::mode.values",
    }
    for wanted, expected in chosen.items():
        done = fresh_python(script, kernels_on="2.0.1", MPSMITH_REGISTRY=str(tmp_path), MPSMITH_KERNELS=wanted)
        assert done.stdout.strip() == expected


def test_kernels_that_are_native_in_newer_releases(fresh_python: FreshPython) -> None:
    done = fresh_python(
        """
        from mpsmith.audit.cases.sources.layouts import stepped
        from mpsmith.kernels.verification.verify import verify
        from mpsmith.kernels.runtime import catalog

        for family in ("shrink", "logit"):
            names = [kernel.overload for kernel in catalog.family(family)]
            assert set(kernels.enable(*names)) == set(names), family
            with metal.checking("schedules"):
                result = verify(family)
            assert result.passed, result.failures[:3]
            assert not result.native
            with metal.checking("checked"):
                assert verify(family, [stepped]).passed
        """,
        kernels_on="1.12.1",
    )
    assert done.returncode == 0
