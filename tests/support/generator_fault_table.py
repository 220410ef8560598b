"""Faults for the code generator of torch 2.13.0: the changed lines, and the groups of cases that should find them."""

from __future__ import annotations

from support.generator_faults import GeneratorFault

IDENTITY, MASK, INDEX, DTYPE = "identity of a reduction", "lost mask", "index", "dtype"
OPERATION, BARRIER, MEMORY, SPECIAL = "wrong operation", "missing barrier", "memory", "special value"

_SUM_OR_PROD = '(0, "+") if reduction_type == "sum" else (1, "*")'
_CAST = 'return f"static_cast<{DTYPE_TO_METAL[dtype]}>({x})"'
_ANY = """            self.indexing_code.writeline(
                "threadgroup_barrier(metal::mem_flags::mem_threadgroup);"
            )
"""

FAULTS: tuple[GeneratorFault, ...] = (
    GeneratorFault(
        "a sum over more than 1,024 elements starts at 1 in each thread",
        IDENTITY,
        _SUM_OR_PROD,
        '(1, "+") if reduction_type == "sum" else (1, "*")',
        ("compiled situations:sum.sizes:float32",),
    ),
    GeneratorFault(
        "a product over more than 1,024 elements starts at 0",
        IDENTITY,
        _SUM_OR_PROD,
        '(0, "+") if reduction_type == "sum" else (0, "*")',
        ("compiled situations:prod.sizes:float32",),
    ),
    GeneratorFault(
        "a maximum over more than 1,024 elements starts at what a minimum does",
        IDENTITY,
        'op_struct = "MaxOp" if reduction_type == "max" else "MinOp"',
        'op_struct = "MinOp" if reduction_type == "max" else "MinOp"',
        ("compiled situations:amax.sizes:float32",),
    ),
    GeneratorFault(
        "a variance over more than 1,024 elements starts at 1",
        IDENTITY,
        'self.indexing_code.splice(f"{acc_thread_var} = 0.0;")\n            self.compute.writeline(\n',
        'self.indexing_code.splice(f"{acc_thread_var} = 1.0;")\n            self.compute.writeline(\n',
        ("compiled situations:var.sizes:float32",),
    ),
    GeneratorFault(
        "the last round over a long dimension does not stop at its end",
        MASK,
        'self.body.writeline(f"if ({linear_idx_name} >= {acc_size}) break;")',
        "pass",
        ("compiled situations:sum.sizes:float32",),
    ),
    GeneratorFault(
        "a masked load is not masked",
        MASK,
        '[f"{DTYPE_TO_METAL[rc.dtype]} {var};", f"if ({mask}) {{"]',
        '[f"{DTYPE_TO_METAL[rc.dtype]} {var};", "if (true) {"]',
        ("opinfo:constant_pad_nd:float32",),
    ),
    GeneratorFault(
        "what a masked load gives outside is 0, whatever was asked for",
        MASK,
        "other_str = value_to_metal(other)",
        'other_str = "0"',
        ("opinfo:constant_pad_nd:float32",),
    ),
    GeneratorFault(
        "an index out of range by one is let pass",
        MASK,
        'condition = f"({expr_str} < 0 || {expr_str} >= {size_str})"',
        'condition = f"({expr_str} < 0 || {expr_str} > {size_str})"',
        ("compiled situations:index.out of range:float32",),
    ),
    GeneratorFault(
        "an index has 8 bits",
        INDEX,
        'self.indexing_code.writeline(\n                f"{self.index_dtype} {entry.name} = {index_str};"',
        'self.indexing_code.writeline(\n                f"uchar {entry.name} = {index_str};"',
        ("opinfo:sin:float32",),
    ),
    GeneratorFault(
        "a part of an index is not taken modulo its size",
        INDEX,
        'return f"({x}) % ({mod})"',
        'return f"({x})"',
        ("opinfo:permute_copy:float32", "layouts:add:float32"),
    ),
    GeneratorFault(
        "argmax over more than 1,024 elements gives the next index",
        INDEX,
        "{idx_val} = {idx_var.name};",
        "{idx_val} = {idx_var.name} + 1;",
        ("compiled situations:argmax.sizes:float32",),
    ),
    GeneratorFault(
        "the grid is one element short",
        INDEX,
        "                    if v.is_reduction\n                    else v.numel\n",
        "                    if v.is_reduction\n                    else v.numel - 1\n",
        ("opinfo:sin:float32",),
    ),
    GeneratorFault(
        "a conversion to any dtype is one to float",
        DTYPE,
        _CAST,
        'return f"static_cast<float>({x})"',
        ("special values:long:int32", "special values:float_power:int64"),
    ),
    GeneratorFault(
        "64-bit integers are loaded as 32-bit ones",
        DTYPE,
        'torch.int64: "long",',
        'torch.int64: "int",',
        ("opinfo:add:int64",),
    ),
    GeneratorFault(
        "a store to memory goes through int",
        DTYPE,
        'cast_val = f"static_cast<{dtype_str}>({value})"',
        'cast_val = f"static_cast<{dtype_str}>(static_cast<int>({value}))"',
        ("opinfo:sin:float32",),
    ),
    GeneratorFault(
        "the minimum is the maximum",
        OPERATION,
        'return f"c10::metal::min({typecast_a}, {typecast_b})"',
        'return f"c10::metal::max({typecast_a}, {typecast_b})"',
        ("opinfo:minimum:float32",),
    ),
    GeneratorFault(
        "the operands of pow are swapped",
        OPERATION,
        'return f"metal::pow({cast_a}, {cast_b})"',
        'return f"metal::pow({cast_b}, {cast_a})"',
        ("opinfo:pow:float32",),
    ),
    GeneratorFault(
        "the remainder has the sign of the first operand",
        OPERATION,
        'return f"c10::metal::remainder({a}, {b})"',
        'return f"metal::fmod({a}, {b})"',
        ("opinfo:remainder:float32",),
    ),
    GeneratorFault(
        "the arms of a choice are swapped",
        OPERATION,
        'return f"{a} ? {b} : static_cast<decltype({b})>({value_to_metal(c)})"',
        'return f"!({a}) ? {b} : static_cast<decltype({b})>({value_to_metal(c)})"',
        ("opinfo:where:float32",),
    ),
    GeneratorFault(
        "no barrier between clearing what any() collects and the first thread that sets it",
        BARRIER,
        _ANY,
        "",
        ("opinfo:any:float32",),
    ),
    GeneratorFault(
        "an atomic addition is a load, an addition and a store",
        BARRIER,
        'line = f"{atomic_type}::atomic_add({cast_var}, {self.index_to_str(index)}, {cast_val});"',
        'line = f"{var}[{self.index_to_str(index)}] += {cast_val};"',
        ("opinfo:index_put:float32", "opinfo:nn.functional.embedding:float32"),
    ),
    GeneratorFault(
        "a reduction has room for the whole SIMD groups alone",
        MEMORY,
        "ceildiv(acc_buf_size, self.simd_group_size)",
        "max(acc_buf_size // self.simd_group_size, 1)",
        ("compiled situations:sum.sizes:float32",),
    ),
    GeneratorFault(
        "the maximum loses nan",
        SPECIAL,
        'return f"c10::metal::max({typecast_a}, {typecast_b})"',
        'return f"metal::max({typecast_a}, {typecast_b})"',
        ("special values:maximum:float32",),
    ),
    GeneratorFault(
        "minus infinity is written as infinity",
        SPECIAL,
        'return "-HUGE_VALF"',
        'return "HUGE_VALF"',
        ("opinfo:nn.functional.max_pool2d:float32", "opinfo:masked.amax:float32"),
    ),
    GeneratorFault(
        "a number in the program keeps two places",
        SPECIAL,
        "        return str(val)\n    elif isinstance(val, bool):",
        '        return f"{val:.2f}"\n    elif isinstance(val, bool):',
        ("opinfo:nn.functional.gelu:float32",),
    ),
    GeneratorFault(
        "the sign bit is asked for by a comparison",
        SPECIAL,
        'return f"metal::signbit({x})"',
        'return f"{x} < 0"',
        ("special values:signbit:float32",),
    ),
)
