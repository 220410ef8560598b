#include "shared/philox.metal"
#include "shared/polynomial.metal"
#include "shared/report.metal"
#include "shared/strided.metal"

// Large rates and counts: transformed rejection with squeeze (W. Hormann, Insurance: Mathematics and Economics 12, 1993,
// and Journal of Statistical Computation and Simulation 46, 1993). Both accept by the logarithm of the probability, here
// in the saddle-point form (C. Loader, Fast and accurate computation of binomial probabilities, 2000): its terms are small
// where the probability is not, so that float32 does for counts of any size.

// The mean from which on rejection is faster than counting; Hormann proves it from here on.
constant float LARGE = 10.0f;
// About one proposal in two is accepted: so many in a row are refused for an infinite rate or count alone.
constant int MOST_PROPOSALS = 1000;
constant float LOG_TWO_PI = 1.8378770664093453f;

// log(k!) - ((k + 1/2) log(k) - k + log(2 pi) / 2) for k from 1 on: what Stirling's formula leaves out.
constant float STIRLING_REST[10] = {
    0.0f,
    0.08106146679532726f,
    0.04134069595540929f,
    0.02767792568499834f,
    0.02079067210376509f,
    0.01664469118982119f,
    0.01387612882307075f,
    0.01189670994589177f,
    0.01041126526197209f,
    0.00925546218271273f,
};

inline float stirling_rest(float k) {
  if (k < 10.0f) {
    return STIRLING_REST[max(int(k), 0)];
  }
  const float inverse = 1.0f / k, square = inverse * inverse;
  return inverse * (1.0f / 12 - square * (1.0f / 360 - square * (1.0f / 1260)));
}

// log(1 + d) for d above -1.
inline float log_one_plus(float d) { return abs(d) <= 0.5f ? log1p_near_zero(d) : precise::log(1.0f + d); }

// (1 + d) log(1 + d) - d, without cancellation around zero.
inline float deviance(float d) {
  if (d <= -1.0f) {
    return 1.0f;
  }
  if (abs(d) >= 0.125f) {
    return (1.0f + d) * log_one_plus(d) - d;
  }
  float sum = 0.0f;
  for (int n = 9; n >= 2; --n) {
    sum = fma(-d, sum, 1.0f / float(n * (n - 1)));
  }
  return d * d * sum;
}

// The point from which distances of counts are measured: a mean as its whole part and the rest.
struct mean_value {
  float value;
  float whole;
  float rest;
  mean_value(float high, float low) : value(high), whole(floor(high)), rest((high - floor(high)) + low) {}
};

inline float poisson_by_counting(thread philox& numbers, float rate) {
  const float limit = precise::exp(-rate);
  float product = numbers.uniform(), count = 0.0f;
  while (product > limit) {
    product *= numbers.uniform();
    count += 1.0f;
  }
  return count;
}

// Hormann's PTRS.
inline float poisson_by_rejection(thread philox& numbers, float rate) {
  const mean_value mean(rate, 0.0f);
  const float b = 0.931f + 2.53f * precise::sqrt(rate);
  const float a = -0.059f + 0.02483f * b;
  const float inverse_alpha = 1.1239f + 1.1328f / (b - 3.4f);
  const float squeeze = 0.9277f - 3.6224f / (b - 2.0f);
  for (int proposal = 0; proposal < MOST_PROPOSALS; ++proposal) {
    const float u = numbers.uniform() - 0.5f, v = numbers.uniform();
    const float distance = 0.5f - abs(u);
    const float step = floor((2.0f * a / distance + b) * u + mean.rest + 0.43f);
    const float k = mean.whole + step;
    if (distance >= 0.07f && v <= squeeze) {
      return k;
    }
    if (k < 0.0f || (distance < 0.013f && v > distance)) {
      continue;
    }
    const float proposed = precise::log(v * inverse_alpha / (a / (distance * distance) + b));
    const float log_probability = k == 0.0f
        ? -rate
        : -stirling_rest(k) - rate * deviance((step - mean.rest) / rate) - 0.5f * (LOG_TWO_PI + precise::log(k));
    if (proposed <= log_probability) {
      return k;
    }
  }
  return rate;
}

inline float poisson(thread philox& numbers, float rate) {
  return rate == 0.0f ? 0.0f : rate < LARGE ? poisson_by_counting(numbers, rate) : poisson_by_rejection(numbers, rate);
}

// Counts the successes by the gaps between them, which are geometric; p is at most 1/2.
inline float binomial_by_gaps(thread philox& numbers, float count, float p) {
  const float log_failure = log_one_plus(-p);
  float place = 0.0f, successes = 0.0f;
  for (;;) {
    place += max(1.0f, ceil(precise::log(numbers.uniform()) / log_failure));
    if (!(place <= count)) {
      return successes;
    }
    successes += 1.0f;
  }
}

// The logarithm of the probability of mean.whole + step successes, less what depends on the count alone.
inline float log_binomial(float count, float p, float q, float step, mean_value mean) {
  const float k = mean.whole + step;
  if (k <= 0.0f) {
    return count * log_one_plus(-p) - stirling_rest(count) + 0.5f * (LOG_TWO_PI - precise::log(count));
  }
  const float failures = count - k;
  if (failures <= 0.0f) {
    return count * precise::log(p) - stirling_rest(count) + 0.5f * (LOG_TWO_PI - precise::log(count));
  }
  const float off = step - mean.rest;
  return -stirling_rest(k) - stirling_rest(failures) - mean.value * deviance(off / mean.value) -
      count * q * deviance(-off / (count * q)) - 0.5f * (precise::log(k) + precise::log(failures / count));
}

// Hormann's BTRS; count * p is at least 10 and p at most 1/2.
inline float binomial_by_rejection(thread philox& numbers, float count, float p) {
  const float q = 1.0f - p, product = count * p;
  const mean_value mean(product, fma(count, p, -product));
  const float deviation = precise::sqrt(product * q);
  const float b = 1.15f + 2.53f * deviation;
  const float a = -0.0873f + 0.0248f * b + 0.01f * p;
  const float alpha = (2.83f + 5.1f / b) * deviation;
  const float squeeze = 0.92f - 4.2f / b;
  const float mode = floor(mean.rest + p);
  const float at_mode = log_binomial(count, p, q, mode, mean);
  for (int proposal = 0; proposal < MOST_PROPOSALS; ++proposal) {
    const float u = numbers.uniform() - 0.5f, v = numbers.uniform();
    const float distance = 0.5f - abs(u);
    const float step = floor((2.0f * a / distance + b) * u + mean.rest + 0.5f);
    const float k = mean.whole + step;
    if (distance >= 0.07f && v <= squeeze) {
      return k;
    }
    if (k < 0.0f || k > count) {
      continue;
    }
    const float proposed = precise::log(v * alpha / (a / (distance * distance) + b));
    if (proposed <= log_binomial(count, p, q, step, mean) - at_mode) {
      return k;
    }
  }
  return product;
}

inline float rare_binomial(thread philox& numbers, float count, float p) {
  return count * p >= LARGE ? binomial_by_rejection(numbers, count, p) : binomial_by_gaps(numbers, count, p);
}

inline float binomial(thread philox& numbers, float count, float p) {
  if (count <= 0.0f || p <= 0.0f) {
    return 0.0f;
  }
  if (p >= 1.0f) {
    return count;
  }
  if (!(p <= 0.5f)) {
    return p > 0.5f ? count - rare_binomial(numbers, count, 1.0f - p) : p;
  }
  return rare_binomial(numbers, count, p);
}

template <typename T>
kernel void poisson_of(
    device T* out [[buffer(0)]],
    device const T* rates [[buffer(1)]],
    constant int* seed [[buffer(2)]],
    constant ulong& elements [[buffer(3)]],
    REPORT_BUFFER(4) uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const ulong i = element_of<ulong>(position, grid);
  if (i >= elements) {
    return;
  }
  const float rate = float(rates[i]);
  if (!(rate >= 0.0f)) {
    out[i] = T(NAN);
    REPORT("invalid Poisson rate, expected rate to be non-negative");
    return;
  }
  philox numbers(seed, i);
  out[i] = T(poisson(numbers, rate));
}

kernel void binomial_of(
    device float* out [[buffer(0)]],
    device const float* counts [[buffer(1)]],
    device const float* probabilities [[buffer(2)]],
    constant int* seed [[buffer(3)]],
    constant ulong& elements [[buffer(4)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const ulong i = element_of<ulong>(position, grid);
  if (i < elements) {
    philox numbers(seed, i);
    out[i] = binomial(numbers, counts[i], probabilities[i]);
  }
}

#define POISSON(T) \
  template [[host_name("poisson_" #T)]] kernel void poisson_of<T>( \
      device T*, device const T*, constant int*, constant ulong&, REPORT_TYPE uint2, uint2);

POISSON(float)
POISSON(half)
POISSON(bfloat)
