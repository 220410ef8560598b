// The windows of adaptive pooling: output o of O covers the inputs [floor(o I / O), ceil((o + 1) I / O)).
#include "shared/division.metal"
#include "shared/strided.metal"

inline long window_start(long o, long inputs, long outputs) { return quotient(o * inputs, outputs); }
inline long window_end(long o, long inputs, long outputs) { return quotient((o + 1) * inputs + outputs - 1, outputs); }

// The outputs whose windows hold input i: the same with the roles exchanged.
inline long first_window(long i, long inputs, long outputs) { return quotient(i * outputs, inputs); }
inline long last_window(long i, long inputs, long outputs) { return quotient((i + 1) * outputs + inputs - 1, inputs); }

// What the host passes (runtime/pooling.py): sizes and element strides of the dimensions channel, depth, height and
// width; a plane is a channel of an image.
struct pool3d {
  long planes;
  long channels;
  long in[3];
  long out[3];
  long image_stride;
  long channel_stride;
  long stride[3];
};

inline pool3d read_pool3d(constant long* g) {
  return pool3d{g[0], g[1], {g[2], g[3], g[4]}, {g[5], g[6], g[7]}, g[8], g[9], {g[10], g[11], g[12]}};
}

inline ulong count_of(long planes, thread const long (&size)[3]) {
  return ulong(planes) * ulong(size[0]) * ulong(size[1]) * ulong(size[2]);
}

// A position in a tensor of (planes, depth, height, width).
struct place3d { long plane, d, h, w; };

// The place of an element of a contiguous tensor.
inline place3d place_of(ulong element, thread const long (&size)[3]) {
  const ulong w = quotient(element, ulong(size[2]));
  const ulong h = quotient(w, ulong(size[1]));
  const ulong d = quotient(h, ulong(size[0]));
  return place3d{
      long(d), long(h - d * ulong(size[0])), long(w - h * ulong(size[1])), long(element - w * ulong(size[2]))};
}

// The window of one output and how to run through it: position k of `volume` in the order of a contiguous input.
struct window3d {
  long start[3];
  long size[3];

  window3d(place3d at, thread const pool3d& pool) {
    const long o[3] = {at.d, at.h, at.w};
    for (uint i = 0; i < 3; ++i) {
      start[i] = window_start(o[i], pool.in[i], pool.out[i]);
      size[i] = window_end(o[i], pool.in[i], pool.out[i]) - start[i];
    }
  }
  long volume() const { return size[0] * size[1] * size[2]; }
  place3d at(long k) const {
    const long row = quotient(k, size[2]), slice = quotient(row, size[1]);
    return place3d{0, start[0] + slice, start[1] + row - slice * size[1], start[2] + k - row * size[2]};
  }
};

// Runs through a window in steps of a group's threads. A division for each input would take longer than to read it: the
// step is divided once, and a position is carried over from one dimension to the next.
struct window_walk {
  place3d at;
  place3d step;
  long end_h;
  long end_w;
  long size_h;
  long size_w;

  window_walk(window3d window, long first, long threads) {
    at = window.at(first);
    step.d = quotient(threads, window.size[1] * window.size[2]);
    const long rest = threads - step.d * window.size[1] * window.size[2];
    step.h = quotient(rest, window.size[2]);
    step.w = rest - step.h * window.size[2];
    step.plane = 0;
    size_h = window.size[1];
    size_w = window.size[2];
    end_h = window.start[1] + size_h;
    end_w = window.start[2] + size_w;
  }
  void next() {
    at.w += step.w;
    const bool beyond_row = at.w >= end_w;
    at.w -= beyond_row ? size_w : 0;
    at.h += step.h + (beyond_row ? 1 : 0);
    const bool beyond_slice = at.h >= end_h;
    at.h -= beyond_slice ? size_h : 0;
    at.d += step.d + (beyond_slice ? 1 : 0);
  }
};

inline long offset_in_plane(place3d at, thread const pool3d& pool) {
  return at.d * pool.stride[0] + at.h * pool.stride[1] + at.w * pool.stride[2];
}

inline long plane_offset(long plane, thread const pool3d& pool) {
  const long image = quotient(plane, pool.channels);
  return image * pool.image_stride + (plane - image * pool.channels) * pool.channel_stride;
}
