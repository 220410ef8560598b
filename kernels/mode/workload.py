"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload, rows_and_columns

WORKLOAD = Workload("aten::mode", lambda x: torch.mode(x, -1), lambda n: (torch.randn(rows_and_columns(n)).round(),))
