"""Where cases come from: torch's OpInfos and ModuleInfos, what is derived from them, and packages of the user."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from ....errors import MpsmithError, one_line
from ...model.case import CaseSource
from ..calls.package_operators import registered_operators
from .argument_pairs import ARGUMENT_PAIR_FACTOR
from .arguments import ARGUMENT_FACTOR
from .cancellation import CANCELLATION_FACTOR
from .derived import VariedSource
from .elementwise_kernels import ELEMENTWISE_KERNEL_FACTOR
from .errors import ERROR_FACTOR
from .forms import FORM_FACTOR
from .gradients import GRADIENT_FACTOR
from .kernel_sizes import KernelSizeSource
from .known_wrong import KnownWrongSource
from .large import LargeSource
from .layouts import LAYOUT_FACTOR
from .mixed_dtypes import MIXED_DTYPE_CALL_FACTOR, MIXED_DTYPE_FACTOR
from .modules import ModuleSource
from .opinfo import OpInfoSource
from .pairs import PAIR_FACTOR
from .planned_pairs import PlannedPairSource
from .random import RANDOM_FACTOR
from .repetition import REPETITION_FACTOR
from .schema import SchemaSource
from .schema_forms import SCHEMA_FORM_FACTOR
from .schema_random import SchemaRandomSource
from .sizes import SIZE_FACTOR
from .special_values import SPECIAL_VALUE_FACTOR
from .tensor_layouts import TENSOR_LAYOUT_FACTOR
from .without_gradients import WITHOUT_GRADIENT_FACTOR
from .write_targets import SCHEMA_TARGET_FACTOR, TARGET_FACTOR


def case_sources(imports: Sequence[str]) -> dict[str, CaseSource]:
    """All sources by name.

    A package offers sources as a list `mpsmith_case_sources`. For the operators that it defines, calls are made from
    their schemas. Raises MpsmithError for a package that cannot be imported or offers something else than a source.
    """
    before = registered_operators() if imports else frozenset()
    offered: list[CaseSource] = []
    for package in imports:
        offered.extend(_package_sources(package))
    defined = sorted(registered_operators() - before) if imports else []
    opinfos, modules = OpInfoSource(), ModuleSource()
    schemas = SchemaSource(packages=list(imports), foreign=defined)
    arguments = VariedSource(ARGUMENT_FACTOR, schemas, name=ARGUMENT_FACTOR.name)
    argument_pairs = VariedSource(ARGUMENT_PAIR_FACTOR, schemas, name=ARGUMENT_PAIR_FACTOR.name)
    mixed, sizes = VariedSource(MIXED_DTYPE_FACTOR, opinfos), VariedSource(SIZE_FACTOR, opinfos)
    without_gradients = VariedSource(WITHOUT_GRADIENT_FACTOR, opinfos)
    schema_sizes, elementwise = VariedSource(SIZE_FACTOR, schemas), VariedSource(ELEMENTWISE_KERNEL_FACTOR, schemas)
    sources: list[CaseSource] = [
        KnownWrongSource(),  # first: a bug that is back is known before anything else
        opinfos,
        VariedSource(LAYOUT_FACTOR, opinfos),
        *(VariedSource(TENSOR_LAYOUT_FACTOR, base) for base in (opinfos, modules, schemas)),
        *(VariedSource(SPECIAL_VALUE_FACTOR, base) for base in (opinfos, modules, schemas)),
        *(VariedSource(CANCELLATION_FACTOR, base) for base in (opinfos, modules)),
        VariedSource(FORM_FACTOR, opinfos),
        VariedSource(TARGET_FACTOR, opinfos),
        VariedSource(SCHEMA_TARGET_FACTOR, schemas),
        mixed,
        *(VariedSource(MIXED_DTYPE_CALL_FACTOR, base) for base in (modules, schemas)),
        *(VariedSource(GRADIENT_FACTOR, base) for base in (opinfos, modules)),
        without_gradients,
        VariedSource(ERROR_FACTOR, opinfos),
        sizes,
        VariedSource(SIZE_FACTOR, modules),
        schema_sizes,
        KernelSizeSource(),
        VariedSource(PAIR_FACTOR, opinfos),
        VariedSource(RANDOM_FACTOR, opinfos),
        VariedSource(REPETITION_FACTOR, opinfos),
        modules,
        schemas,
        elementwise,
        VariedSource(SCHEMA_FORM_FACTOR, schemas),
        arguments,
        argument_pairs,
        VariedSource(REPETITION_FACTOR, schemas),
        SchemaRandomSource(schemas),
        PlannedPairSource("planned pairs", opinfos, mixed, sizes, without_gradients),
        PlannedPairSource("module planned pairs", modules),
        PlannedPairSource("schema planned pairs", schemas, arguments, argument_pairs, elementwise, schema_sizes),
        LargeSource(),
        KnownWrongSource(large=True),
    ]
    sources.extend(offered)
    return {source.name: source for source in sources}


def _package_sources(package: str) -> list[CaseSource]:
    """Import a package of the user; the sources that it offers."""
    try:
        module = importlib.import_module(package)
    except Exception as error:  # a foreign package may raise anything
        raise MpsmithError(f"--import {package}: {type(error).__name__}: {one_line(error)}") from error
    sources = list(getattr(module, "mpsmith_case_sources", ()))
    for source in sources:
        if not isinstance(source, CaseSource):
            raise MpsmithError(
                f"--import {package}: mpsmith_case_sources holds {source!r}, not a mpsmith.audit.model.case.CaseSource"
            )
    return sources
