"""Limits of Apple GPUs that a program for the host would not notice."""

MAX_BUFFERS = 31
"""Buffer indices go from 0 to 30."""

MAX_THREADGROUP_MEMORY = 32 * 1024
"""Bytes of threadgroup memory for one threadgroup."""

MAX_THREADS_PER_THREADGROUP = 1024

SIMD_WIDTH = 32

MAX_INLINE_BYTES = 4096
"""Bytes that a scalar or a list may take: more needs a buffer."""
