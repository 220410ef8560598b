"""C++ around a kernel: a loop over one row of a threadgroup, and a table of the parameters."""

from __future__ import annotations

import re

from .entries import EntryPoint


def symbol(kernel: str) -> str:
    """A C name for a kernel's name, whatever characters `host_name` holds."""
    return re.sub(r"\W", lambda m: f"_{ord(m[0]):x}_", kernel)


def wrap(kernel: EntryPoint) -> str:
    """The entry point `msl_run_NAME` and the table `msl_parameters_NAME` of one kernel.

    A kernel that waits at no barrier is inlined into the loop, which the compiler then vectorises.
    """
    name = symbol(kernel.name)
    function_type = f"void F{kernel.signature}" if kernel.signature else f"decltype({kernel.function}) F"
    loads: list[str] = []
    values: list[str] = []
    table: list[str] = []
    for position, argument in enumerate(kernel.arguments):
        parameter = f"metal::msl_argument<{position}, F>::type"
        if argument.kind == "builtin":
            values.append(f"metal::msl_builtin<{parameter}>(t.{argument.builtin}())")
        else:
            loads.append(f"const ulong a{position} = g->arguments[{argument.slot}];")
            values.append(f"metal::msl_binding<{parameter}>::bind(a{position})")
            table.append(f"metal::msl_binding<{parameter}>::describe({argument.slot})")
    return (
        f'\n# {kernel.location.line} "{kernel.location.file}"\n'
        f'extern "C" __attribute__((visibility("default"))) void msl_run_{name}('
        f"const msl_group* g, uint begin, uint end, uint y, uint z) {{ typedef {function_type};"
        f" const msl_group group = *g; {' '.join(loads)}"
        f" for (uint x = begin; x < end; x++) {{ metal::msl_thread t{{group, x, y, z}}; (void)t;"
        f" {kernel.function}({', '.join(values)}); }} }}"
        f' extern "C" __attribute__((visibility("default"))) const msl_parameter* msl_parameters_{name}(uint* count)'
        f" {{ typedef {function_type}; *count = {len(table)};"
        f" static const msl_parameter table[] = {{{', '.join([*table, 'msl_parameter{0, 0, 0, 0}'])}}};"
        f" return table; }}"
        f' extern "C" __attribute__((visibility("default"))) void msl_sections_{name}(msl_sections* s)'
        f" {{ *s = msl_sections MSL_SECTIONS; }}\n"
    )
