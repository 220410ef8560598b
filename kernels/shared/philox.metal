// Philox4x32-10, a generator whose numbers are a function of a key and a counter (J. K. Salmon et al., Parallel random
// numbers: as easy as 1, 2, 3, SC 2011): every thread has its own sequence, in whatever order threads run.
#include <metal_stdlib>
using namespace metal;

// Four numbers of a counter under a key.
inline uint4 philox_block(uint4 counter, uint2 key) {
  for (int round = 0; round < 10; ++round) {
    const uint high0 = mulhi(0xD2511F53u, counter.x), low0 = 0xD2511F53u * counter.x;
    const uint high1 = mulhi(0xCD9E8D57u, counter.z), low1 = 0xCD9E8D57u * counter.z;
    counter = uint4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
    key += uint2(0x9E3779B9u, 0xBB67AE85u);
  }
  return counter;
}

struct philox {
  uint4 counter;
  uint2 key;
  uint4 block;
  uint taken;

  // `seed`: four words that the host drew. `element` chooses one of 2^64 sequences.
  philox(constant int* seed, ulong element)
      : counter(uint4(0, uint(seed[2]), uint(element), uint(element >> 32) ^ uint(seed[3]))),
        key(uint2(uint(seed[0]), uint(seed[1]))),
        block(uint4(0)),
        taken(4) {}

  uint next() {
    if (taken == 4) {
      block = philox_block(counter, key);
      counter.x += 1;
      taken = 0;
    }
    return block[taken++];
  }

  // In (0, 1), neither end: a multiple of 2^-23, and a half of that.
  float uniform() { return (float(next() >> 9) + 0.5f) * 0x1p-23f; }
};
