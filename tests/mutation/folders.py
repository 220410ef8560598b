"""Which modules decide, and the tests that hold each: mutants of a module meet no other tests."""

from __future__ import annotations


def _in(folder: str, *names: str) -> list[str]:
    return [f"tests/unit/{folder}/test_{name}.py" for name in names]


JUDGING, FINDINGS, KERNELS = "audit/judging", "audit/findings", "kernels"
LAUNCHES = ["tests/unit/scaffold/launches", *_in("scaffold/targets", "golden_files")]
TARGETS = _in("scaffold/targets", "golden_files")

FOLDERS: dict[str, dict[str, list[str]]] = {
    "judging": {
        "audit/judging/acceptance.py": _in(JUDGING, "acceptance"),
        "audit/judging/agreement.py": _in(JUDGING, "agreement", "judging_parts"),
        "audit/judging/arguments.py": _in(JUDGING, "agreement", "judging_parts"),
        "audit/judging/compare.py": _in(JUDGING, "tolerances", "conditioning", "compare", "judging_parts"),
        "audit/judging/distributions.py": _in(JUDGING, "distributions", "judging_parts"),
        "audit/judging/execution.py": _in(JUDGING, "executions", "reference"),
        "audit/judging/fallbacks.py": _in(JUDGING, "executions"),
        "audit/judging/judge.py": _in(JUDGING, "judge_verdicts", "judging_parts"),
        "audit/judging/uninitialised_memory.py": _in(JUDGING, "judge_verdicts"),
        "audit/judging/memory.py": _in(JUDGING, "agreement", "judging_parts"),
        "audit/judging/operator_name.py": _in(JUDGING, "conditioning", "randomness"),
        "audit/judging/randomness.py": _in(JUDGING, "judging_parts", "randomness"),
        "audit/judging/reference.py": _in(JUDGING, "reference", "judging_parts"),
        "audit/judging/signed_zeros.py": _in(JUDGING, "conditioning"),
        "audit/judging/transfer.py": _in(JUDGING, "copies", "transfer"),
        "audit/judging/call_tracer.py": _in(JUDGING, "executions"),
    },
    "evidence": {
        "audit/findings/attribution.py": _in(FINDINGS, "attribution", "summary"),
        "audit/findings/evidence.py": _in(FINDINGS, "evidence", "summary"),
        "audit/findings/explanations.py": _in(FINDINGS, "explanations", "rules"),
        "audit/findings/rules/rule.py": _in(FINDINGS, "rules", "explanations"),
        "audit/findings/summary.py": _in(FINDINGS, "summary", "known_reports", "measurements"),
    },
    "registration": {
        "kernels/runtime/catalog.py": _in(KERNELS, "registration_states", "catalog_names"),
        "kernels/runtime/dispatcher.py": _in(KERNELS, "registration_states"),
        "kernels/runtime/registration.py": _in(KERNELS, "registration_states"),
        "registry/kernel_index.py": _in("registry", "registry_kernel_index"),
    },
    "generation": {
        "scaffold/launches/aten_host.py": LAUNCHES,
        "scaffold/launches/cxx_host.py": LAUNCHES,
        "scaffold/launches/host.py": LAUNCHES,
        "scaffold/launches/launch.py": LAUNCHES,
        "scaffold/launches/python_host.py": LAUNCHES,
        "scaffold/launches/schema_launch.py": LAUNCHES,
        "scaffold/operators/kinds.py": _in("scaffold/operators", "kind_rules"),
        "scaffold/targets/extension.py": TARGETS,
        "scaffold/targets/rendering.py": _in("scaffold/targets", "rendering", "golden_files"),
        "scaffold/targets/shader.py": TARGETS,
        "scaffold/targets/upstream/dispatch_stubs.py": TARGETS,
        "scaffold/targets/upstream/patch.py": TARGETS,
        "scaffold/targets/upstream/yaml_rows.py": TARGETS,
    },
}
