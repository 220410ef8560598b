#include "shared/division.metal"
#include "shared/report.metal"
#include "shared/strided.metal"

// Connectionist temporal classification (Graves et al., 2006): the sum over all alignments of a target with the steps
// of the input, forwards in `alpha` and backwards in `beta`, as logarithms. A target of length S is stretched by blanks
// to 2S + 1 states: state s is a blank where s is even, else label s / 2.

// What the host passes: steps, labels, states of the longest target, the strides of the probabilities from step to
// step, item to item and label to label, the blank, the stride of the targets, the number of items, and whether
// impossible items have no gradient.
struct problem {
  long steps;
  long labels;
  long states;
  long step_stride;
  long item_stride;
  long label_stride;
  long blank;
  long target_stride;
  long items;
  bool forgives;
  problem(constant long* g)
      : steps(g[0]),
        labels(g[1]),
        states(g[2]),
        step_stride(g[3]),
        item_stride(g[4]),
        label_stride(g[5]),
        blank(g[6]),
        target_stride(g[7]),
        items(g[8]),
        forgives(g[9] != 0) {}
};

// One item of the batch. lengths: steps, then lengths of targets, then where each target starts.
struct item {
  long steps;
  long states;
  device const long* target;
  item(long n, device const long* targets, constant long* lengths, thread const problem& p)
      : steps(lengths[n]), states(2 * lengths[p.items + n] + 1), target(targets + lengths[2 * p.items + n]) {}
  long label(long state, thread const problem& p) const {
    return state % 2 == 0 ? p.blank : target[(state / 2) * p.target_stride];
  }
  // Whether an alignment may end in the state: in the last label or the blank behind it. At the last step the others are
  // left out, whatever the probabilities of their labels are, NaN too.
  bool ends(long state) const { return state + 2 >= states; }
};

// The label that is read for one out of range, whose kernel reports it.
inline long kept_inside(long label, long labels) { return clamp(label, 0l, labels - 1); }

inline float log_of_sum(float a, float b, float c) {
  const float most = max(a, max(b, c));
  const float shift = most == -INFINITY ? 0.0f : most;
  return precise::log(precise::exp(a - shift) + precise::exp(b - shift) + precise::exp(c - shift)) + shift;
}

// A step of a target that has no more states than its group has threads: each thread keeps its state, what its label is
// and whether it may be jumped to, and the states before stand in threadgroup memory, in two rows that take turns. So a
// step waits once, for its threads, and never for device memory; the probability of the next step is already on its way.
constexpr constant uint MOST_STATES = 256;
struct kept_states {
  threadgroup float* rows;
  uint state;
  uint turn;

  kept_states(threadgroup float* both, uint s) : rows(both), state(s), turn(0) {}
  // Tells the group what this state holds, and waits until all have told.
  void tell(float value) {
    turn ^= MOST_STATES;
    rows[turn + state] = value;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  float at(uint other) const { return rows[turn + other]; }
};

// A group an item, its threads share the states; `alpha` is -infinity before.
kernel void ctc_alpha(
    device float* loss [[buffer(0)]],
    device float* alpha [[buffer(1)]],
    device const float* log_probs [[buffer(2)]],
    device const long* targets [[buffer(3)]],
    constant long* lengths [[buffer(4)]],
    constant long* geometry [[buffer(5)]],
    REPORT_BUFFER(6) uint2 group [[threadgroup_position_in_grid]],
    uint2 in_group [[thread_position_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  const problem p(geometry);
  const long n = long(group.y);
  const item one(n, targets, lengths, p);
  device float* row = alpha + n * p.steps * p.states;
  device const float* probs = log_probs + n * p.item_stride;
  threadgroup float rows[2 * MOST_STATES];
  if (one.states <= group_size.x && one.steps > 0) {
    const uint s = in_group.x;
    const bool is_state = s < one.states;
    const long label = is_state ? one.label(s, p) : p.blank;
    if (label < 0 || label >= p.labels) {
      REPORT("ctc_loss: label ", label, " is out of range of ", p.labels, " labels");
    }
    const bool jumps = s > 1 && is_state && one.label(s - 2, p) != label;
    device const float* mine = probs + kept_inside(label, p.labels) * p.label_stride;
    float value = s < 2 && is_state ? mine[0] : -INFINITY;
    kept_states before(rows, s);
    for (long t = 1; t < one.steps; ++t) {
      const float probability = mine[t * p.step_stride];
      if (is_state) {
        row[s] = value;
      }
      row += p.states;
      before.tell(value);
      value =
          log_of_sum(value, s > 0 ? before.at(s - 1) : -INFINITY, jumps ? before.at(s - 2) : -INFINITY) + probability;
    }
    if (is_state) {
      row[s] = value;
    }
    before.tell(value);
    if (s == 0) {
      const uint last = uint(one.states) - 1;
      loss[n] = -log_of_sum(before.at(last), last > 0 ? before.at(last - 1) : -INFINITY, -INFINITY);
    }
    return;
  }
  for (long s = in_group.x; s < one.states; s += group_size.x) {
    const long label = one.label(s, p);
    if (label < 0 || label >= p.labels) {
      REPORT("ctc_loss: label ", label, " is out of range of ", p.labels, " labels");
    }
    if (s < 2 && one.steps > 0) {
      row[s] = probs[kept_inside(label, p.labels) * p.label_stride];
    }
  }
  for (long t = 1; t < one.steps; ++t) {
    threadgroup_barrier(mem_flags::mem_device);
    device const float* before = row;
    row += p.states;
    probs += p.step_stride;
    for (long s = in_group.x; s < one.states; s += group_size.x) {
      const long label = one.label(s, p);
      const float stays = before[s], moves = s > 0 ? before[s - 1] : -INFINITY;
      const float jumps = s > 1 && one.label(s - 2, p) != label ? before[s - 2] : -INFINITY;
      row[s] = log_of_sum(stays, moves, jumps) + probs[kept_inside(label, p.labels) * p.label_stride];
    }
  }
  threadgroup_barrier(mem_flags::mem_device);
  if (in_group.x == 0) {
    const float last = row[one.states - 1], label_last = one.states > 1 ? row[one.states - 2] : -INFINITY;
    const float likelihood = log_of_sum(last, label_last, -INFINITY);
    loss[n] = one.steps > 0 ? -likelihood : one.states == 1 ? -0.0f : INFINITY;
  }
}

// The gradient by one log probability, from the logarithm of the sum over all states of its label.
inline float ctc_slope(float log_prob, float collected, float loss, float output_gradient) {
  return (precise::exp(log_prob) - precise::exp(collected + loss - log_prob)) * output_gradient;
}

inline bool has_no_gradient(long t, float loss, thread const item& one, thread const problem& p) {
  return t >= one.steps || (p.forgives && loss == INFINITY);
}

// The same from the last step to the first; `beta` keeps what it was for other steps and states, which nothing reads.
// The groups behind those of the items write the gradient of every label as if it were not in the target, a thread an
// element: they need nothing from the items, whose steps wait for each other. `gradient` is contiguous.
kernel void ctc_beta(
    device float* gradient [[buffer(0)]],
    device const float* output_gradient [[buffer(1)]],
    device const float* loss [[buffer(2)]],
    device float* beta [[buffer(3)]],
    device const float* log_probs [[buffer(4)]],
    device const long* targets [[buffer(5)]],
    constant long* lengths [[buffer(6)]],
    constant long* geometry [[buffer(7)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 in_group [[thread_position_in_threadgroup]],
    uint2 group_size [[threads_per_threadgroup]]) {
  const problem p(geometry);
  threadgroup float rows[2 * MOST_STATES];
  if (long(group.y) >= p.items) {
    const long element = (long(group.y) - p.items) * long(group_size.x) + long(in_group.x);
    const long label_row = quotient(element, p.labels), t = quotient(label_row, p.items);
    if (t < p.steps) {
      const long n = label_row - t * p.items, c = element - label_row * p.labels;
      const item one(n, targets, lengths, p);
      const float log_prob = log_probs[t * p.step_stride + n * p.item_stride + c * p.label_stride];
      gradient[element] =
          has_no_gradient(t, loss[n], one, p) ? 0.0f : ctc_slope(log_prob, -INFINITY, loss[n], output_gradient[n]);
    }
    return;
  }
  const long n = long(group.y);
  const item one(n, targets, lengths, p);
  if (one.states <= group_size.x) {
    const uint s = in_group.x;
    const bool is_state = s < one.states;
    const long label = is_state ? one.label(s, p) : p.blank;
    const bool moves = s + 1 < one.states, jumps = s + 2 < one.states && one.label(s + 2, p) != label;
    device const float* mine = log_probs + n * p.item_stride + kept_inside(label, p.labels) * p.label_stride;
    device float* row = beta + n * p.steps * p.states;
    float value = 0.0f;
    kept_states after(rows, s);
    for (long t = one.steps - 1; t >= 0; --t) {
      const float probability = mine[t * p.step_stride];
      if (t < one.steps - 1) {
        after.tell(value);
        value =
            probability + log_of_sum(value, moves ? after.at(s + 1) : -INFINITY, jumps ? after.at(s + 2) : -INFINITY);
      } else {
        value = one.ends(s) ? probability : -INFINITY;
      }
      if (is_state) {
        row[t * p.states + s] = value;
      }
    }
    return;
  }
  for (long t = one.steps - 1; t >= 0; --t) {
    device float* row = beta + (n * p.steps + t) * p.states;
    device const float* after = row + p.states;
    device const float* probs = log_probs + n * p.item_stride + t * p.step_stride;
    const bool is_last = t == one.steps - 1;
    for (long s = in_group.x; s < one.states; s += group_size.x) {
      const long label = one.label(s, p);
      const float probability = probs[kept_inside(label, p.labels) * p.label_stride];
      if (is_last) {
        row[s] = one.ends(s) ? probability : -INFINITY;
        continue;
      }
      const float moves = s + 1 < one.states ? after[s + 1] : -INFINITY;
      const float jumps = s + 2 < one.states && one.label(s + 2, p) != label ? after[s + 2] : -INFINITY;
      row[s] = log_of_sum(after[s], moves, jumps) + probability;
    }
    threadgroup_barrier(mem_flags::mem_device);
  }
}

// A thread a label of the target, or the blank, of each item and step: where a label comes more than once, the first
// one sums for all of them.
kernel void ctc_collect(
    device float* gradient [[buffer(0)]],
    device const float* output_gradient [[buffer(1)]],
    device const float* loss [[buffer(2)]],
    device const float* beta [[buffer(3)]],
    device const float* log_probs [[buffer(4)]],
    device const long* targets [[buffer(5)]],
    constant long* lengths [[buffer(6)]],
    constant long* geometry [[buffer(7)]],
    device const float* alpha [[buffer(8)]],
    uint3 at [[thread_position_in_grid]]) {
  const problem p(geometry);
  const long n = at.y, t = at.z;
  const item one(n, targets, lengths, p);
  const long first = at.x == 0 ? 0 : 2 * long(at.x) - 1;
  if (first >= one.states || has_no_gradient(t, loss[n], one, p)) {
    return;
  }
  const long label = one.label(first, p);
  if (label < 0 || label >= p.labels) {
    return;
  }
  const long row = (n * p.steps + t) * p.states;
  const bool is_last = t == one.steps - 1;
  // A state that adds alone needs no logarithm of a sum, so that an infinite one stays infinite.
  float most = -INFINITY, lowest = -INFINITY;
  bool found = false, alone = true;
  for (long s = 0; s < one.states; ++s) {
    if (one.label(s, p) != label) {
      continue;
    }
    if (s < first) {
      return;
    }
    if (is_last && !one.ends(s)) {
      continue;
    }
    const float through = alpha[row + s] + beta[row + s];
    most = max(most, through);
    alone = alone && (!found || through == -INFINITY);
    lowest = found ? lowest : through;
    found = true;
  }
  float collected = lowest;
  if (!alone) {
    const float shift = most == -INFINITY ? 0.0f : most;
    float sum = 0.0f;
    for (long s = first; s < one.states; ++s) {
      const bool counts = one.label(s, p) == label && (!is_last || one.ends(s));
      sum += counts ? precise::exp(alpha[row + s] + beta[row + s] - shift) : 0.0f;
    }
    collected = precise::log(sum) + shift;
  }
  const float log_prob = log_probs[t * p.step_stride + n * p.item_stride + label * p.label_stride];
  gradient[(t * p.items + n) * p.labels + label] = ctc_slope(log_prob, collected, loss[n], output_gradient[n]);
}
