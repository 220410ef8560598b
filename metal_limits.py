"""Limits of Apple GPUs, for launches and checks. A kernel compiled for the host could exceed them unnoticed."""

MAX_BUFFERS = 31
"""Buffer indices go from 0 to 30."""

MAX_THREADGROUP_MEMORY = 32 * 1024
"""Bytes of threadgroup memory for one threadgroup."""

MAX_THREADS_PER_THREADGROUP = 1024

SIMD_WIDTH = 32
"""Threads of a SIMD group: they run together and can read each other's registers."""

CONSTANT_ALIGNMENT = 4
"""What the offset of a buffer in the constant address space is a multiple of."""

MAX_BUFFER_BYTES = 4 * 2**30
"""The largest buffer of a Mac with 8 GB, half its memory (llama.cpp pull request 1706); larger Macs allow more."""

MAX_INLINE_BYTES = 4096
"""Bytes that a scalar or a list may take: more needs a buffer."""
