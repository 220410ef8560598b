#include <metal_stdlib>
using namespace metal;

// Floats of eight bits (P. Micikevicius et al., FP8 formats for deep learning, 2022; those without a negative zero:
// B. Noune et al., 8-bit numerical formats for deep neural networks, 2022): a sign, an exponent, and MANTISSA bits.
struct e4m3fn {
  static constant constexpr uint mantissa = 3;
  static constant constexpr int bias = 7;
  static bool is_nan(uint bits) { return (bits & 0x7f) == 0x7f; }
  static bool is_infinite(uint bits) { return false; }
};

struct e5m2 {
  static constant constexpr uint mantissa = 2;
  static constant constexpr int bias = 15;
  static bool is_nan(uint bits) { return (bits & 0x7f) > 0x7c; }
  static bool is_infinite(uint bits) { return (bits & 0x7f) == 0x7c; }
};

struct e4m3fnuz {
  static constant constexpr uint mantissa = 3;
  static constant constexpr int bias = 8;
  static bool is_nan(uint bits) { return bits == 0x80; }
  static bool is_infinite(uint bits) { return false; }
};

struct e5m2fnuz {
  static constant constexpr uint mantissa = 2;
  static constant constexpr int bias = 16;
  static bool is_nan(uint bits) { return bits == 0x80; }
  static bool is_infinite(uint bits) { return false; }
};

template <typename F> inline float decoded(uint bits) {
  const uint magnitude = bits & 0x7f, exponent = magnitude >> F::mantissa;
  const uint fraction = magnitude & ((1u << F::mantissa) - 1);
  const float least = as_type<float>(uint(128 - F::bias - int(F::mantissa)) << 23);
  const uint normal = ((exponent + uint(127 - F::bias)) << 23) | (fraction << (23 - F::mantissa));
  float value = exponent == 0 ? float(fraction) * least : as_type<float>(normal);
  value = F::is_infinite(bits) ? INFINITY : F::is_nan(bits) ? NAN : value;
  return bits & 0x80 ? -value : value;
}

// To the nearest, of two as near the even one. `largest`: the bits of the largest number, `beyond`: those of what is
// larger still.
template <typename F> inline uchar encoded(float x, uint largest, uint beyond, uint nan) {
  if (isnan(x)) {
    return uchar(nan);
  }
  const uint sign = as_type<uint>(x) >> 24 & 0x80;
  const float least = as_type<float>(uint(128 - F::bias - int(F::mantissa)) << 23);
  const float magnitude = abs(x);
  uint bits;
  if (magnitude < as_type<float>(uint(128 - F::bias) << 23)) {
    bits = uint(rint(magnitude / least));
  } else {
    constexpr uint dropped = 23 - F::mantissa;
    const uint exact = as_type<uint>(magnitude);
    const uint rounded = exact + ((1u << (dropped - 1)) - 1) + (exact >> dropped & 1);
    const uint shift = uint(127 - F::bias) << F::mantissa;
    bits = isinf(magnitude) ? beyond : (rounded >> dropped) - shift;
    bits = bits > largest ? beyond : bits;
  }
  return uchar(sign | bits);
}

// What results are kept as.
struct to_float {
  typedef float element;
  static float of(float x) { return x; }
};

struct to_half {
  typedef half element;
  static half of(float x) { return half(x); }
};

struct to_bfloat {
  typedef bfloat element;
  static bfloat of(float x) { return bfloat(x); }
};

// Larger numbers become the largest one, as on the CPU.
struct to_e4m3fn {
  typedef uchar element;
  static uchar of(float x) { return encoded<e4m3fn>(x, 0x7e, 0x7e, 0x7f); }
};

struct to_e5m2 {
  typedef uchar element;
  static uchar of(float x) { return encoded<e5m2>(x, 0x7b, 0x7c, 0x7e); }
};

// A group of 16 by 16 threads makes a tile of 64 by 64 results, 4 by 4 a thread: every byte that the group has decoded
// is used 64 times. Tiles of the operands are filled with zeros beyond their ends.
constant constexpr int TILE = 64;
constant constexpr int DEPTH = 16;
constant constexpr int SIDE = 16;
constant constexpr int EACH = TILE / SIDE;

// sizes: rows, columns and inner dimension of the product, the strides of a, of b, and of the result; how far apart the
// scales of rows and of columns are, 0 for one scale; whether `bias` is added, and whether `result_scale` divides.
template <typename A, typename B, typename R>
kernel void scaled_mm(
    device typename R::element* out [[buffer(0)]],
    device const uchar* a [[buffer(1)]],
    device const uchar* b [[buffer(2)]],
    device const float* row_scales [[buffer(3)]],
    device const float* column_scales [[buffer(4)]],
    device const float* bias [[buffer(5)]],
    device const float* result_scale [[buffer(6)]],
    constant long* sizes [[buffer(7)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 in_group [[thread_position_in_threadgroup]]) {
  threadgroup float left[TILE][DEPTH];
  threadgroup float right[DEPTH][TILE];
  const long rows = sizes[0], columns = sizes[1], inner = sizes[2];
  const long first_row = long(group.y) * TILE, first_column = long(group.x) * TILE;
  const int thread_index = int(in_group.y) * SIDE + int(in_group.x);
  float sums[EACH][EACH] = {};
  for (long start = 0; start < inner; start += DEPTH) {
    for (int e = thread_index; e < TILE * DEPTH; e += SIDE * SIDE) {
      const int r = e / DEPTH, k = e % DEPTH;
      const bool inside = first_row + r < rows && start + k < inner;
      left[r][k] = inside ? decoded<A>(a[(first_row + r) * sizes[3] + (start + k) * sizes[4]]) : 0.0f;
      const int depth = e / TILE, c = e % TILE;
      const bool is_inside = start + depth < inner && first_column + c < columns;
      right[depth][c] = is_inside ? decoded<B>(b[(start + depth) * sizes[5] + (first_column + c) * sizes[6]]) : 0.0f;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int k = 0; k < DEPTH; ++k) {
      float row_values[EACH], column_values[EACH];
      for (int i = 0; i < EACH; ++i) {
        row_values[i] = left[int(in_group.y) + i * SIDE][k];
        column_values[i] = right[k][int(in_group.x) + i * SIDE];
      }
      for (int i = 0; i < EACH; ++i) {
        for (int j = 0; j < EACH; ++j) {
          sums[i][j] = fma(row_values[i], column_values[j], sums[i][j]);
        }
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (int i = 0; i < EACH; ++i) {
    for (int j = 0; j < EACH; ++j) {
      const long row = first_row + int(in_group.y) + i * SIDE, column = first_column + int(in_group.x) + j * SIDE;
      if (row < rows && column < columns) {
        const float scaled = sums[i][j] * row_scales[row * sizes[9]] * column_scales[column * sizes[10]];
        const float shifted = scaled + (sizes[11] != 0 ? bias[column] : 0.0f);
        out[row * sizes[7] + column * sizes[8]] = R::of(sizes[12] != 0 ? shifted / result_scale[0] : shifted);
      }
    }
  }
}

#define SCALED_MM(A, B, R, T) \
  template [[host_name("scaled_mm_" #A "_" #B "_" #R)]] kernel void scaled_mm<A, B, to_##R>( \
      device T*, device const uchar*, device const uchar*, device const float*, device const float*, \
      device const float*, device const float*, constant long*, uint2, uint2);
#define RESULTS(A, B) \
  SCALED_MM(A, B, float, float) \
  SCALED_MM(A, B, half, half) \
  SCALED_MM(A, B, bfloat, bfloat) \
  SCALED_MM(A, B, e4m3fn, uchar) \
  SCALED_MM(A, B, e5m2, uchar)
RESULTS(e4m3fn, e4m3fn)
RESULTS(e4m3fn, e5m2)
RESULTS(e5m2, e4m3fn)
RESULTS(e5m2, e5m2)
RESULTS(e4m3fnuz, e4m3fnuz)
RESULTS(e5m2fnuz, e5m2fnuz)
