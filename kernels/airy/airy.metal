#include "shared/elementwise.metal"
#include "shared/polynomial.metal"

// The Airy function Ai for real arguments. The coefficients are Chebyshev interpolants in 40 digits, turned into powers.
//
// [-2.5, 1]: Ai itself (error below 5e-9).
constant float airy_middle[14] = {5.838439607e-8f,  7.041077706e-7f,  8.379929982e-7f,  -6.005241019e-6f,
                                  2.499080243e-5f,  -1.492111126e-6f, -0.000511442481f, 0.001974540052f,
                                  -6.907828655e-7f, -0.0215693081f,   0.05917142017f,   1.642846741e-7f,
                                  -0.2588194066f,   0.3550280497f};
// x > 1: 2 sqrt(pi) x^(1/4) exp(zeta) Ai(x) as a function of 1 / zeta, zeta = 2/3 x^(3/2) (DLMF 9.7.5).
constant float airy_decay[10] = {-0.0004507024949f, 0.003639420681f, -0.01289913679f, 0.0267232997f,   -0.03688941135f,
                                 0.0380165433f,     -0.03460726319f, 0.03679913765f,  -0.06943053098f, 0.9999998975f};
// x < -2.5: Ai = (P cos(zeta - pi/4) + Q sin(zeta - pi/4)) / (sqrt(pi) |x|^(1/4)) with zeta of |x| (DLMF 9.7.9);
// P and zeta Q as functions of 1 / zeta^2.
constant float airy_cosine[6] = {-1.143125783f,  0.6647718042f,   -0.1955166907f,
                                 0.05525746144f, -0.03710782116f, 0.9999999501f};
constant float airy_sine[6] = {-3.454249233f, 1.910682631f,    -0.5013403216f,
                               0.1071874964f, -0.03789959787f, 0.06944426359f};

constant float ONE_OVER_SQRT_PI = 0.5641895835f;
constant float SQRT_HALF = 0.7071067812f;

// 2/3 x^(3/2) as a sum: rounded, and what the rounding lost. A float alone would spoil exp and cos for large x.
inline float2 airy_zeta(float x) {
  constexpr float TWO_THIRDS = 0.6666667f, TWO_THIRDS_REST = -1.9868216e-8f;
  const float root = precise::sqrt(x);
  const float root_rest = fma(-root, root, x) / (2.0f * root);
  const float power = x * root;
  const float power_rest = fma(x, root, -power) + x * root_rest;
  const float zeta = TWO_THIRDS * power;
  return float2(zeta, fma(TWO_THIRDS, power, -zeta) + TWO_THIRDS_REST * power + TWO_THIRDS * power_rest);
}

struct special_airy_ai {
  static float value(float x) {
    if (isnan(x) || isinf(x)) {
      return NAN;  // for +infinity, too, as torch has it
    }
    if (x >= -2.5f && x <= 1.0f) {
      return polynomial(airy_middle, x);
    }
    const float2 zeta = airy_zeta(abs(x));
    const float scale = ONE_OVER_SQRT_PI / precise::sqrt(precise::sqrt(abs(x)));
    if (x > 0.0f) {
      // exp(a + b) of a small b
      const float decay = precise::exp(-zeta.x) * (1.0f - zeta.y);
      return zeta.x > 104.0f ? 0.0f : 0.5f * scale * decay * polynomial(airy_decay, 1.0f / zeta.x);
    }
    const float inverse = 1.0f / zeta.x;
    const float c = precise::cos(zeta.x), s = precise::sin(zeta.x);
    const float c_rest = precise::cos(zeta.y), s_rest = precise::sin(zeta.y);
    const float cosine = c * c_rest - s * s_rest, sine = s * c_rest + c * s_rest;
    const float p = polynomial(airy_cosine, inverse * inverse);
    const float q = polynomial(airy_sine, inverse * inverse) * inverse;
    return scale * SQRT_HALF * (p * (cosine + sine) + q * (sine - cosine));
  }
  template <typename T> static T apply(T x, constant float*) { return T(value(float(x))); }
};

UNARY_FLOATING(special_airy_ai)
