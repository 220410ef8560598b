#include "shared/atomic.metal"

// Deformable convolution (X. Zhu et al., Deformable ConvNets v2, CVPR 2019) as a product of matrices: for each element of
// the window (a tap) and each place of the output, the input is sampled where the tap's offset says, by bilinear
// interpolation with zeros around the image, and times the tap's mask.

struct geometry {
  int channels, height, width;
  int taps_high, taps_wide; // the window
  int out_high, out_wide;
  int stride_high, stride_wide, pad_high, pad_wide, dilation_high, dilation_wide;
  int groups; // of channels with the same offsets
  int masked;
};

// Member functions cannot be called for objects in constant memory.
inline int taps_of(constant geometry& g) { return g.taps_high * g.taps_wide; }
inline int places_of(constant geometry& g) { return g.out_high * g.out_wide; }

// The four elements around a point, of which those outside of the image count as zero.
struct sample {
  int y, x;
  float below, right; // how far the point is from row y and column x

  // Where the element of corner 0 to 3 is in an image, or -1.
  int corner(int which, constant geometry& g) const {
    const int row = y + which / 2, column = x + which % 2;
    return row >= 0 && row < g.height && column >= 0 && column < g.width ? row * g.width + column : -1;
  }
  float along_y(int which) const { return which / 2 == 0 ? 1.0f - below : below; }
  float along_x(int which) const { return which % 2 == 0 ? 1.0f - right : right; }
};

// The row or column in front of a coordinate; far outside of the image it is -2, where nothing is.
inline int before(float at, int size, thread float& behind) {
  const float first = floor(at);
  const bool near = at > -2.0f && at < float(size) + 1.0f;
  behind = near || at != at ? at - first : 0.0f;  // a NaN stays one
  return near ? int(first) : -2;
}

// The sample of a tap at a place, from an item's offsets: two planes a tap, first those of rows.
inline sample sample_of(device const float* offsets, int group, int tap, int place, constant geometry& g) {
  device const float* own = offsets + ulong(group * taps_of(g) + tap) * 2 * ulong(places_of(g)) + ulong(place);
  const int row = place / g.out_wide, column = place % g.out_wide;
  const float y = float(row * g.stride_high - g.pad_high + tap / g.taps_wide * g.dilation_high) + own[0];
  const float x = float(column * g.stride_wide - g.pad_wide + tap % g.taps_wide * g.dilation_wide) + own[places_of(g)];
  sample s;
  s.y = before(y, g.height, s.below);
  s.x = before(x, g.width, s.right);
  return s;
}

// Which tap, group of channels and item a thread has, and its place in the output, on which neighbouring threads are
// neighbours.
struct task {
  int place, tap, group, item;

  bool exists(constant geometry& g) const { return place < places_of(g); }
  ulong mask(constant geometry& g) const {
    return (ulong(item) * ulong(g.groups * taps_of(g)) + ulong(group * taps_of(g) + tap)) * ulong(places_of(g)) +
        ulong(place);
  }
  // Of columns (items, channels, taps, places).
  ulong column(int channel, constant geometry& g) const {
    return ((ulong(item) * ulong(g.channels) + ulong(channel)) * ulong(taps_of(g)) + ulong(tap)) * ulong(places_of(g)) +
        ulong(place);
  }
  ulong image(int channel, constant geometry& g) const {
    return (ulong(item) * ulong(g.channels) + ulong(channel)) * ulong(g.height) * ulong(g.width);
  }
  ulong offsets(constant geometry& g) const {
    return ulong(item) * 2 * ulong(g.groups * taps_of(g)) * ulong(places_of(g));
  }
};

inline task task_of(uint3 position, constant geometry& g) {
  const int taken = int(position.y);
  return task{int(position.x), taken % taps_of(g), taken / taps_of(g), int(position.z)};
}

// A thread a tap of a place: samples all channels of its group.
kernel void deform_columns(
    device float* columns [[buffer(0)]],
    device const float* input [[buffer(1)]],
    device const float* offsets [[buffer(2)]],
    device const float* mask [[buffer(3)]],
    constant geometry& g [[buffer(4)]],
    uint3 position [[thread_position_in_grid]]) {
  const task own = task_of(position, g);
  if (!own.exists(g)) {
    return;
  }
  const sample s = sample_of(offsets + own.offsets(g), own.group, own.tap, own.place, g);
  const float factor = g.masked ? mask[own.mask(g)] : 1.0f;
  const int channels = g.channels / g.groups;
  for (int channel = own.group * channels; channel < (own.group + 1) * channels; ++channel) {
    device const float* image = input + own.image(channel, g);
    float sum = 0.0f;
    for (int which = 0; which < 4; ++which) {
      const int at = s.corner(which, g);
      sum = fma(s.along_y(which) * s.along_x(which), at < 0 ? 0.0f : image[at], sum);
    }
    columns[own.column(channel, g)] = factor * sum;
  }
}

// A thread a tap of a place: what the gradients of its columns give to the input, which is added atomically, to its two
// offsets and to its mask.
kernel void deform_gradients(
    device float* of_input [[buffer(0)]],
    device float* of_offsets [[buffer(1)]],
    device float* of_mask [[buffer(2)]],
    device const float* columns [[buffer(3)]],
    device const float* input [[buffer(4)]],
    device const float* offsets [[buffer(5)]],
    device const float* mask [[buffer(6)]],
    constant geometry& g [[buffer(7)]],
    uint3 position [[thread_position_in_grid]]) {
  const task own = task_of(position, g);
  if (!own.exists(g)) {
    return;
  }
  const sample s = sample_of(offsets + own.offsets(g), own.group, own.tap, own.place, g);
  const float factor = g.masked ? mask[own.mask(g)] : 1.0f;
  const int channels = g.channels / g.groups;
  float down = 0.0f, across = 0.0f, whole = 0.0f;
  for (int channel = own.group * channels; channel < (own.group + 1) * channels; ++channel) {
    device const float* image = input + own.image(channel, g);
    const float gradient = columns[own.column(channel, g)];
    for (int which = 0; which < 4; ++which) {
      const int at = s.corner(which, g);
      const float share = s.along_y(which) * s.along_x(which), value = at < 0 ? 0.0f : gradient * image[at];
      down += which / 2 == 0 ? -s.along_x(which) * value : s.along_x(which) * value;
      across += which % 2 == 0 ? -s.along_y(which) * value : s.along_y(which) * value;
      whole = fma(share, value, whole);
      if (at >= 0) {
        atomic_adder<float>::add(of_input, own.image(channel, g) + ulong(at), gradient * factor * share);
      }
    }
  }
  const ulong of_rows = own.offsets(g) + ulong(own.group * taps_of(g) + own.tap) * 2 * ulong(places_of(g));
  of_offsets[of_rows + ulong(own.place)] = factor * down;
  of_offsets[of_rows + ulong(places_of(g) + own.place)] = factor * across;
  if (g.masked) {
    of_mask[own.mask(g)] = whole;
  }
}
