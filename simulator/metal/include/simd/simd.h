// The names that headers share between host code and Metal. All else of metal_stdlib is read before the program.
#pragma once
#define MSL_SIMD_MATRICES(t, c) \
  typedef metal::t##c##x2 matrix_##t##c##x2, simd_##t##c##x2; \
  typedef metal::t##c##x3 matrix_##t##c##x3, simd_##t##c##x3; \
  typedef metal::t##c##x4 matrix_##t##c##x4, simd_##t##c##x4;
#define MSL_SIMD_VECTORS(t) \
  typedef t vector_##t##1, simd_##t##1; \
  typedef metal::t##2 vector_##t##2, simd_##t##2; \
  typedef metal::t##3 vector_##t##3, simd_##t##3; \
  typedef metal::t##4 vector_##t##4, simd_##t##4;
MSL_SIMD_VECTORS(char)
MSL_SIMD_VECTORS(uchar)
MSL_SIMD_VECTORS(short)
MSL_SIMD_VECTORS(ushort)
MSL_SIMD_VECTORS(int)
MSL_SIMD_VECTORS(uint)
MSL_SIMD_VECTORS(long)
MSL_SIMD_VECTORS(ulong)
MSL_SIMD_VECTORS(half)
MSL_SIMD_VECTORS(float)
MSL_SIMD_MATRICES(half, 2)
MSL_SIMD_MATRICES(half, 3)
MSL_SIMD_MATRICES(half, 4)
MSL_SIMD_MATRICES(float, 2)
MSL_SIMD_MATRICES(float, 3)
MSL_SIMD_MATRICES(float, 4)
#undef MSL_SIMD_MATRICES
#undef MSL_SIMD_VECTORS
