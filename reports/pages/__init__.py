"""The generated pages: one registry of everything that `mpsmith report --pages` writes."""

from __future__ import annotations

from . import compiled_defects, kernels, known_reports, recall, releases, wrong_results
from .networks import networks_document
from .page import Needs, Page, PageInputs

__all__ = ["PAGES", "Needs", "Page", "PageInputs"]

_ALL = (
    Page("releases", "Coverage of every release since 1.12.1", Needs.NOTHING, releases.history_document),
    Page("networks", "Networks, release by release", Needs.NETWORKS, networks_document),
    Page("wrong_results", "Wrong results of the kernels that a release ships", Needs.WHEEL, wrong_results.document),
    Page("known_reports", "Known reports in PyTorch's own host code", Needs.NOTHING, known_reports.document),
    Page("recall", "The injected faults that an audit finds", Needs.DEVICE, recall.document),
    Page("kernel_backlog", "What torch lacks on mps, with and without our kernels", Needs.STORES, kernels.backlog),
    Page("dtype_gaps", "The dtypes that a release expects to fail on mps", Needs.NOTHING, kernels.dtype_gaps),
    Page("kernel_references", "Our kernels against independent references", Needs.DEVICE, kernels.references),
    Page("compiled_defects", "Known defects of torch.compile's Metal", Needs.NOTHING, compiled_defects.document),
)

# Each page by its name.
PAGES: dict[str, Page] = {page.name: page for page in _ALL}
