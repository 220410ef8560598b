"""Which part of the way refused a compiled call, from the exception alone."""

from __future__ import annotations

import errno

from mpsmith.audit.compiled.refusals import fault_of_this_machine, reason_of, refused_line, verdict_of_exception
from mpsmith.audit.compiled.verdicts import CompiledVerdict
from mpsmith.simulator.clang import InternalCompilerError

SOURCE = "kernel void f() { auto t = metal::sign(x); }"
REFUSED = (
    f"failed to compile {SOURCE} with program_source:6:13: error: call to 'sign' is ambiguous\n   6 |  metal::sign(x);"
)


def _inductor_error(inner: Exception) -> Exception:
    from torch._inductor.exc import InductorError

    return InductorError(inner, None)


def _raised_by_cosh() -> Exception:
    def cosh() -> None:
        raise NotImplementedError

    try:
        cosh()
    except NotImplementedError as error:
        return error
    raise AssertionError


class TestVerdictOfException:
    def test_the_metal_compiler_refuses(self) -> None:
        error = _inductor_error(SyntaxError(REFUSED))
        assert verdict_of_exception(error) is CompiledVerdict.REJECTED
        assert reason_of(error) == "call to 'sign' is ambiguous"
        assert refused_line(error) == "metal::sign(x);"

    def test_python_that_does_not_parse_is_not_a_refusal_by_metal(self) -> None:
        error = SyntaxError("invalid syntax")
        assert verdict_of_exception(error) is CompiledVerdict.ERROR
        assert refused_line(error) == ""

    def test_inductor_generates_nothing(self) -> None:
        error = _inductor_error(_raised_by_cosh())
        assert verdict_of_exception(error) is CompiledVerdict.NOT_LOWERED
        assert reason_of(error) == "NotImplementedError in cosh"

    def test_the_host_s_compiler_refuses_in_one_line(self) -> None:
        class CppCompileError(RuntimeError):
            pass

        said = (
            "C++ compile error\n\nCommand:\ng++ -D USE_MPS\n\nOutput:\nmain.cpp:7:3: error: 'handle' was not declared\n"
        )
        error = _inductor_error(CppCompileError(said))
        assert verdict_of_exception(error) is CompiledVerdict.NOT_LOWERED
        assert reason_of(error) == "CppCompileError: 'handle' was not declared"

    def test_running_out_of_memory_during_compilation_is_not_a_refusal(self) -> None:
        """Of the limit of the worker, which would refuse the call as it is too."""
        error = _inductor_error(MemoryError())
        assert verdict_of_exception(error) is CompiledVerdict.CRASH
        assert reason_of(error) == "out of memory"

    def test_a_cause_counts_as_the_exception_itself(self) -> None:
        error = RuntimeError("of the back end")
        error.__cause__ = SyntaxError(REFUSED)
        assert verdict_of_exception(error) is CompiledVerdict.REJECTED


def test_hints_are_not_part_of_the_reason() -> None:
    error = RuntimeError("sizes differ\nSet TORCHDYNAMO_VERBOSE=1 for the internal stack trace")
    assert reason_of(error) == "RuntimeError: sizes differ"


class TestFaultOfThisMachine:
    def test_a_full_disk_says_nothing_about_the_call(self) -> None:
        full = OSError(errno.ENOSPC, "No space left on device")
        assert fault_of_this_machine(_inductor_error(full)) is full

    def test_a_compiler_that_fails_says_nothing_about_the_call(self) -> None:
        failed = InternalCompilerError("the linker failed")
        assert fault_of_this_machine(_inductor_error(failed)) is failed

    def test_source_that_dynamo_does_not_find_is_not_a_fault_of_the_machine(self) -> None:
        assert fault_of_this_machine(_inductor_error(OSError("could not get source code"))) is None
