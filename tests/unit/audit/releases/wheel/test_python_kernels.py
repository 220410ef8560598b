import pytest

from mpsmith.audit.releases.data import load
from mpsmith.audit.releases.wheel.python_kernels import read_python_kernels


@pytest.mark.parametrize(
    ("source", "overloads"),
    [
        (
            'mps_lib = torch.library.Library("aten", "IMPL", "MPS")\nmps_lib.impl("aten::linalg_lu_solve.out", f)\n',
            ("linalg_lu_solve.out",),
        ),
        (
            'if is_built():\n    _lib = _Library("aten", "IMPL")\n    _lib.impl("native_group_norm", g, "MPS")\n',
            ("native_group_norm",),
        ),
        ('lib = Library("aten", "IMPL", "CPU")\nlib.impl("abs", f)\nother = Library("aten", "IMPL", "MPS")\n', ()),
        ('lib = Library("mine", "DEF")\nlib.impl("mine::f", f, "MPS")\n', ()),
        ('lib.impl(name, f, "MPS")\n', ()),
        ('lib.impl("abs", f, "MPS"\n', ()),
        ("", ()),
    ],
)
def test_registrations_in_python(source: str, overloads: tuple[str, ...]) -> None:
    assert read_python_kernels({"torch/x.py": source.encode()}) == overloads


def test_committed_releases() -> None:
    kernels = {facts.release: facts.python_kernels for facts in load().releases}
    assert kernels["2.13.0"] == ("linalg_lu_solve.out",)
    assert kernels["2.15.0"] == ()
    assert "var_mean.correction" in kernels["2.0.1"]
