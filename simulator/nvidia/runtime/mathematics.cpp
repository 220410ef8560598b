// Functions of the C library, which AIR's mathematics calls (simulator/air), implemented by NVIDIA's libdevice.
#define C_LIBRARY extern "C" __attribute__((always_inline))

#define UNARY(name) \
  extern "C" float __nv_##name##f(float); \
  C_LIBRARY float name##f(float x) { return __nv_##name##f(x); }
#define BINARY(name) \
  extern "C" float __nv_##name##f(float, float); \
  C_LIBRARY float name##f(float x, float y) { return __nv_##name##f(x, y); }
#define DOUBLE(name) \
  extern "C" double __nv_##name(double); \
  C_LIBRARY double name(double x) { return __nv_##name(x); }
UNARY(sin)
UNARY(cos)
UNARY(tan)
UNARY(asin)
UNARY(acos)
UNARY(atan)
UNARY(sinh)
UNARY(cosh)
UNARY(tanh)
UNARY(asinh)
UNARY(acosh)
UNARY(atanh)
UNARY(exp)
UNARY(exp2)
UNARY(exp10)
UNARY(log)
UNARY(log2)
UNARY(log10)
BINARY(pow)
BINARY(atan2)
BINARY(fmod)
BINARY(fdim)
DOUBLE(sin)
DOUBLE(tan)
DOUBLE(sqrt)
extern "C" float __nv_ldexpf(float, int);
C_LIBRARY float ldexpf(float x, int exponent) { return __nv_ldexpf(x, exponent); }
