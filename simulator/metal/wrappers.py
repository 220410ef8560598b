"""C++ wrappers of kernels: a loop over a row of a threadgroup, and a table of parameters."""

from __future__ import annotations

import re

from .entries import EntryPoint


def symbol(kernel: str) -> str:
    """A C name for a kernel, whatever characters its `host_name` contains."""
    return re.sub(r"\W", lambda m: f"_{ord(m[0]):x}_", kernel)


def wrap(kernel: EntryPoint) -> str:
    """The entry point `msl_run_NAME` and the table `msl_parameters_NAME` of one kernel.

    A kernel without barriers is inlined into the loop, which the compiler then vectorizes.
    """
    name = symbol(kernel.name)
    # Every name here begins with msl_, because a kernel may be called `group` or `count`.
    # From the global namespace: a kernel may have the name of a library function.
    function = f"::{kernel.function.removeprefix('::')}"
    function_type = f"void msl_F{kernel.signature}" if kernel.signature else f"decltype({function}) msl_F"
    loads: list[str] = []
    values: list[str] = []
    table: list[str] = []
    for position, argument in enumerate(kernel.arguments):
        parameter = f"metal::msl_argument<{position}, msl_F>::type"
        if argument.kind == "builtin":
            values.append(f"metal::msl_builtin<{parameter}>(msl_t.{argument.builtin}())")
        else:
            loads.append(f"const ulong msl_a{position} = msl_g->arguments[{argument.slot}];")
            values.append(f"metal::msl_binding<{parameter}>::bind(msl_a{position})")
            table.append(f"metal::msl_binding<{parameter}>::describe({argument.slot})")
    return (
        f'\n# {kernel.location.line} "{kernel.location.file}"\n'
        f'extern "C" __attribute__((visibility("default"))) void msl_run_{name}('
        f"const msl_group* msl_g, uint msl_begin, uint msl_end, uint msl_y, uint msl_z) {{ typedef {function_type};"
        f" const msl_group msl_copy = *msl_g; {' '.join(loads)}"
        f" for (uint msl_x = msl_begin; msl_x < msl_end; msl_x++) {{"
        f" metal::msl_thread msl_t{{msl_copy, msl_x, msl_y, msl_z}}; (void)msl_t;"
        f" {function}({', '.join(values)}); }} }}"
        f' extern "C" __attribute__((visibility("default"))) const msl_parameter* msl_parameters_{name}('
        f"uint* msl_count) {{ typedef {function_type}; *msl_count = {len(table)};"
        f" static const msl_parameter msl_table[] = {{{', '.join([*table, 'msl_parameter{0, 0, 0, 0, 1}'])}}};"
        f" return msl_table; }}"
        f' extern "C" __attribute__((visibility("default"))) void msl_sections_{name}(msl_sections* msl_s)'
        f" {{ *msl_s = msl_sections MSL_SECTIONS; }}\n"
    )
