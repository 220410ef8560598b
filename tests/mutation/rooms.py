"""Which modules decide, and the tests that hold each: a module of the right column meets no other tests."""

from __future__ import annotations

JUDGING = ["tests/unit/audit/judging"]
FINDINGS = ["tests/unit/audit/findings"]

KERNELS = ["tests/unit/kernels/test_registration_states.py", "tests/unit/kernels/test_catalog_names.py"]
GENERATION = ["tests/unit/scaffold/operators", "tests/unit/scaffold/targets/test_golden_files.py"]

ROOMS: dict[str, dict[str, list[str]]] = {
    "judging": {
        "audit/judging/agreement.py": JUDGING,
        "audit/judging/compare.py": JUDGING,
        "audit/judging/distributions.py": JUDGING,
        "audit/judging/execution.py": JUDGING,
        "audit/judging/fallbacks.py": JUDGING,
        "audit/judging/judge.py": JUDGING,
        "audit/judging/reference.py": JUDGING,
        "audit/judging/transfer.py": JUDGING,
        "audit/judging/witness.py": JUDGING,
    },
    "evidence": {
        "audit/findings/attribution.py": FINDINGS,
        "audit/findings/evidence.py": FINDINGS,
        "audit/findings/explanations.py": FINDINGS,
        "audit/findings/rules.py": FINDINGS,
        "audit/findings/summary.py": FINDINGS,
    },
    "registration": {
        "kernels/runtime/catalog.py": KERNELS,
        "kernels/runtime/dispatcher.py": KERNELS,
        "kernels/runtime/registration.py": KERNELS,
        "registry/kernel_index.py": ["tests/unit/registry/test_registry_kernel_index.py"],
    },
    "generation": {
        "scaffold/launches/aten_host.py": GENERATION,
        "scaffold/launches/cxx_host.py": GENERATION,
        "scaffold/launches/launch.py": GENERATION,
        "scaffold/launches/python_host.py": GENERATION,
        "scaffold/launches/stable_host.py": GENERATION,
        "scaffold/operators/kinds.py": GENERATION,
        "scaffold/targets/extension.py": GENERATION,
        "scaffold/targets/rendering.py": GENERATION,
        "scaffold/targets/shader.py": GENERATION,
        "scaffold/targets/stable.py": GENERATION,
        "scaffold/targets/upstream/dispatch_stubs.py": GENERATION,
        "scaffold/targets/upstream/patch.py": GENERATION,
        "scaffold/targets/upstream/yaml_rows.py": GENERATION,
    },
}
