#include "shared/elementwise.metal"
#include "shared/polynomial.metal"

// The coefficients are Chebyshev interpolants of the functions in 40 digits, turned into powers.
//
// The inverse of the normal distribution function; q = p - 1/2, r = sqrt(-2 log min(p, 1 - p)).
// |q| <= 0.3: x / q as a function of q^2.
constant float ndtri_central[8] = {7233.188831f, -539.1159912f, 238.5499346f, 43.02942555f,
                                   15.76330445f, 5.771429527f,  2.624939784f, 2.506628271f};
// 1.79 <= r <= 4.5: |x| - r as a function of r - 3.
constant float ndtri_tail[11] = {-1.095709898e-6f,  5.439538113e-6f,  -1.4221308e-5f,   4.269111923e-5f,
                                 -0.0001580528268f, 0.0005819668404f, -0.002156274372f, 0.008249697861f,
                                 -0.03293453347f,   0.1409567152f,    -0.7133796702f};
// r > 4.5, up to the smallest float: r - |x| as a function of 1 / r.
constant float ndtri_far_tail[9] = {-20223.55233f, 27341.62602f,  -16342.11594f, 5706.755186f,  -1302.753734f,
                                    209.6113628f,  -27.03494253f, 4.572005352f,  0.01573022342f};
// (1 + 2 z) exp(z^2) erfc(z) for z >= 0 as a function of (z - 3) / (z + 3).
constant float erfcx_scaled[12] = {8.007454975e-5f, -9.253769126e-5f, -0.0007340820504f, 0.001875060246f,
                                   0.002506778672f, -0.0237635597f,   0.06831319672f,    -0.1192752814f,
                                   0.1296447209f,   -0.04756215615f,  -0.1356211001f,    1.253008056f};

constant float SQRT_HALF = 0.7071067812f;
constant float LOG_HALF = -0.6931471806f;

struct special_ndtri {
  static float value(float p) {
    if (!(p >= 0.0f && p <= 1.0f)) {
      return NAN;
    }
    if (p == 0.0f || p == 1.0f) {
      return p == 0.0f ? -INFINITY : INFINITY;
    }
    const float q = p - 0.5f;
    if (abs(q) <= 0.3f) {
      return q * polynomial(ndtri_central, q * q);
    }
    const float r = precise::sqrt(-2.0f * precise::log(q < 0.0f ? p : 1.0f - p));
    const float x = r <= 4.5f ? r + polynomial(ndtri_tail, r - 3.0f) : r - polynomial(ndtri_far_tail, 1.0f / r);
    return q < 0.0f ? -x : x;
  }
  template <typename T> static T apply(T p, constant float*) { return T(value(float(p))); }
};

// The logarithm of the normal distribution function. With z = |x| / sqrt(2):
// below zero  log(erfcx(z) / 2) - z^2, above  log(1 - exp(-z^2) erfcx(z) / 2).
struct special_log_ndtr {
  static float value(float x) {
    if (isnan(x) || isinf(x)) {
      return isnan(x) || x < 0.0f ? x : 0.0f;
    }
    const float z = abs(x) * SQRT_HALF;
    const float erfcx = polynomial(erfcx_scaled, (z - 3.0f) / (z + 3.0f)) / fma(2.0f, z, 1.0f);
    const float square = 0.5f * x * x;
    if (x < 0.0f) {
      return precise::log(erfcx) + LOG_HALF - square;
    }
    if (square > 104.0f) {
      return -0.0f;  // exp underflows, and the square of a larger x overflows
    }
    const float rest = fma(0.5f * x, x, -square);  // what the square lost, which exp would enlarge
    return log1p_near_zero(-0.5f * erfcx * precise::exp(-square) * (1.0f - rest));
  }
  template <typename T> static T apply(T x, constant float*) { return T(value(float(x))); }
};

UNARY_FLOATING(special_ndtri)
UNARY_FLOATING(special_log_ndtr)
