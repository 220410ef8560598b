"""The headlines of well-known operators, checked by hand against upstream's yaml and MPSFallback.mm."""

import pytest

from mpsmith.audit.answers.answer import answer
from mpsmith.audit.answers.support import Support

WORKS, PARTLY, NO = Support.WORKS, Support.PARTLY, Support.NO

# What torch 2.13.0 does; the first release with a kernel for all calls, up to 2.13.0; the first later one.
# "1.12.1" is the oldest release that was read: the kernel may be older.
HEADLINES = [
    ("add", WORKS, "1.12.1", None),
    ("mul", WORKS, "1.12.1", None),
    ("matmul", WORKS, "1.12.1", None),
    ("mm", WORKS, "1.12.1", None),  # mm.dtype has no kernel on the CPU either
    ("bmm", WORKS, "1.12.1", None),
    ("addmm", WORKS, "1.12.1", None),
    ("max", WORKS, "1.12.1", None),  # max.unary_out alone is missing
    ("min", WORKS, "1.12.1", None),
    ("sum", WORKS, "1.12.1", None),
    ("mean", WORKS, "1.12.1", None),
    ("std", WORKS, "1.12.1", None),
    ("softmax", WORKS, "1.12.1", None),
    ("relu", WORKS, "1.12.1", None),
    ("gelu", WORKS, "1.12.1", None),
    ("sigmoid", WORKS, "1.12.1", None),
    ("exp", WORKS, "1.12.1", None),
    ("cat", WORKS, "1.12.1", None),
    ("gather", WORKS, "1.12.1", None),
    ("index_select", WORKS, "1.12.1", None),
    ("nonzero", WORKS, "2.0.1", None),
    ("sort", WORKS, "2.0.1", None),
    ("topk", WORKS, "1.12.1", None),
    ("cumsum", WORKS, "2.0.1", None),
    ("cumprod", WORKS, "2.1.2", None),
    ("median", WORKS, "2.0.1", None),
    ("kthvalue", WORKS, "2.9.1", None),  # through kthvalue.values
    ("histc", WORKS, "2.1.2", None),
    ("multinomial", WORKS, "1.13.1", None),
    ("erfinv", WORKS, "2.1.2", None),
    ("lgamma", WORKS, "2.2.2", None),
    ("logit", WORKS, "2.1.2", None),
    ("softshrink", WORKS, "2.2.2", None),
    ("searchsorted", WORKS, "2.2.2", None),
    ("cdist", WORKS, "2.0.1", None),  # through _cdist_forward
    ("batch_norm", WORKS, "1.12.1", None),
    ("layer_norm", WORKS, "1.12.1", None),
    ("nn.Linear", WORKS, "1.13.1", None),
    ("nn.LSTM", PARTLY, "1.13.1", None),  # refuses proj_size
    ("nn.MultiheadAttention", WORKS, "1.13.1", None),
    ("fft.fft", WORKS, "2.3.1", None),  # through _fft_c2c
    ("grid_sample", WORKS, "2.9.1", None),  # through grid_sampler_3d
    ("linalg.inv", WORKS, "2.0.1", None),  # through linalg_inv_ex
    ("linalg.cholesky", WORKS, "2.7.1", None),  # through linalg_cholesky_ex
    ("linalg.solve", WORKS, "2.7.1", None),  # through _linalg_solve_ex
    ("linalg.qr", WORKS, "2.12.1", None),
    ("linalg.norm", PARTLY, None, "2.14.1"),  # ord="nuc" and ord=2 of a matrix call _linalg_svd
    ("linalg.svd", NO, None, "2.14.1"),  # MPSFallback.mm sends it to the CPU; _linalg_svd since 2.14
    ("svd", NO, None, "2.14.1"),
    ("pinverse", NO, None, "2.14.1"),
    ("linalg.eigh", NO, None, "2.14.1"),  # through _linalg_eigh
    ("linalg.lstsq", NO, None, "2.14.1"),
    ("linalg.eig", NO, None, None),
    ("ctc_loss", NO, None, "2.14.1"),  # through _ctc_loss
    ("heaviside", NO, None, "2.15.0"),
    ("frexp", NO, None, "2.15.0"),
    ("take", NO, None, "2.15.0"),
    ("mode", NO, None, None),
    ("multi_margin_loss", NO, None, None),
    ("fractional_max_pool2d", NO, None, None),
    ("adaptive_avg_pool3d", NO, None, None),  # through _adaptive_avg_pool3d
]


@pytest.mark.parametrize(("name", "support", "since", "upgrade"), HEADLINES)
def test_the_headline_of_a_well_known_operator(
    name: str, support: Support, since: str | None, upgrade: str | None
) -> None:
    found = answer(name)
    assert (found.support, found.since, found.upgrade) == (support, since, upgrade)


def test_there_are_sixty() -> None:
    assert len({name for name, *_ in HEADLINES}) >= 60
