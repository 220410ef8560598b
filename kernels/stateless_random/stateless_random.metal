#include "shared/division.metal"
#include "shared/philox.metal"
#include "shared/strided.metal"

// A key is a seed and an offset. Block i of a key is Philox of the counter offset + i, whose upper half is zero, under
// the seed: as torch.func._random draws on every device.
inline uint4 block_of(ulong seed, ulong counter) {
  return philox_block(uint4(uint(counter), uint(counter >> 32), 0, 0), uint2(uint(seed), uint(seed >> 32)));
}

// The lower half comes first where a block becomes a key.
inline ulong2 key_of(uint4 block) {
  return ulong2(ulong(block.x) | ulong(block.y) << 32, ulong(block.z) | ulong(block.w) << 32);
}

// The upper half comes first where a block becomes two numbers.
inline ulong2 wide(uint4 block) {
  return ulong2(ulong(block.x) << 32 | ulong(block.y), ulong(block.z) << 32 | ulong(block.w));
}

// A thread a new key: of split s and key k the result is at s * keys + k. Folding is a split of which one is wanted,
// `first`.
kernel void derive_keys(
    device ulong2* out [[buffer(0)]],
    device const ulong2* keys [[buffer(1)]],
    device const ulong& first [[buffer(2)]],
    constant ulong* sizes [[buffer(3)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const ulong i = element_of<ulong>(position, grid), splits = sizes[0], count = sizes[1];
  if (i >= splits * count) {
    return;
  }
  const ulong split = quotient(i, count);
  const ulong2 key = keys[i - split * count];
  out[i] = key_of(block_of(key.x, key.y + first + split));
}

// Each distribution makes a block `count` elements, in order. `limits` are what the host passes for it.
// limits: low, high less low. DIGITS: how many bits the dtype holds exactly.
template <typename T, int DIGITS> struct uniform_numbers {
  typedef T element;
  typedef float limit;
  static constant constexpr uint count = 4;
  static void draw(thread T* values, uint4 block, constant float* limits) {
    constexpr uint mask = (1u << DIGITS) - 1;
    for (uint j = 0; j < count; ++j) {
      values[j] = T(float(block[j] & mask) * (1.0f / float(1u << DIGITS)) * limits[1] + limits[0]);
    }
  }
};

// Two pairs by the polar form (G. E. P. Box and M. E. Muller, A note on the generation of random normal deviates, 1958),
// the cosine before the sine. limits: mean, standard deviation.
template <typename T> struct normal_numbers {
  typedef T element;
  typedef float limit;
  static constant constexpr uint count = 4;
  static void draw(thread T* values, uint4 block, constant float* limits) {
    for (uint j = 0; j < count; j += 2) {
      const float radius = precise::sqrt(-2.0f * precise::log(fma(float(block[j]), 0x1p-32f, 0x1p-33f)));
      const float angle = 2.0f * M_PI_F * fma(float(block[j + 1]), 0x1p-32f, 0x1p-33f);
      values[j] = T(radius * precise::cos(angle) * limits[1] + limits[0]);
      values[j + 1] = T(radius * precise::sin(angle) * limits[1] + limits[0]);
    }
  }
};

// limits: the lowest number, and how many there are; 0 for all that the drawn bits make. The bits below the element's
// width are those of the drawn number, whether it has a sign or not.
template <typename T> struct whole_numbers {
  typedef T element;
  typedef long limit;
  static constant constexpr uint count = 4;
  static void draw(thread T* values, uint4 block, constant long* limits) {
    const uint low = uint(limits[0]), range = uint(limits[1]);
    for (uint j = 0; j < count; ++j) {
      values[j] = T(range == 0 ? block[j] : low + block[j] % range);
    }
  }
};

struct long_whole_numbers {
  typedef ulong element;
  typedef long limit;
  static constant constexpr uint count = 2;
  static void draw(thread ulong* values, uint4 block, constant long* limits) {
    const ulong low = ulong(limits[0]), range = ulong(limits[1]);
    const ulong2 drawn = wide(block);
    for (uint j = 0; j < count; ++j) {
      values[j] = range == 0 ? drawn[j] : low + drawn[j] % range;
    }
  }
};

// A thread a block. sizes: keys, elements of each, blocks of each.
template <typename D>
kernel void draw(
    device typename D::element* out [[buffer(0)]],
    device const ulong2* keys [[buffer(1)]],
    constant typename D::limit* limits [[buffer(2)]],
    constant ulong* sizes [[buffer(3)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const ulong i = element_of<ulong>(position, grid), elements = sizes[1], blocks = sizes[2];
  if (i >= sizes[0] * blocks) {
    return;
  }
  const ulong at = quotient(i, blocks), block = i - at * blocks;
  const ulong2 key = keys[at];
  typename D::element values[D::count];
  D::draw(values, block_of(key.x, key.y + block), limits);
  for (uint j = 0; j < D::count && block * D::count + j < elements; ++j) {
    out[at * elements + block * D::count + j] = values[j];
  }
}

#define DRAW(NAME, D, T, L) \
  template [[host_name(NAME)]] kernel void draw<D>( \
      device T*, device const ulong2*, constant L*, constant ulong*, uint2, uint2);

typedef uniform_numbers<float, 24> uniform_floats;
typedef uniform_numbers<half, 11> uniform_halves;
typedef uniform_numbers<bfloat, 8> uniform_bfloats;
DRAW("uniform_float", uniform_floats, float, float)
DRAW("uniform_half", uniform_halves, half, float)
DRAW("uniform_bfloat", uniform_bfloats, bfloat, float)
DRAW("normal_float", normal_numbers<float>, float, float)
DRAW("normal_half", normal_numbers<half>, half, float)
DRAW("normal_bfloat", normal_numbers<bfloat>, bfloat, float)
DRAW("whole_1", whole_numbers<uchar>, uchar, long)
DRAW("whole_2", whole_numbers<ushort>, ushort, long)
DRAW("whole_4", whole_numbers<uint>, uint, long)
DRAW("whole_8", long_whole_numbers, ulong, long)
