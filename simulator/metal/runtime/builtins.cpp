// Functions of the compiler library, which is not linked: conversions to bfloat.
#include <stdint.h>
#include <string.h>

extern "C" __attribute__((visibility("default"))) __bf16 __truncsfbf2(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffff) > 0x7f800000) bits |= 0x400000;  // a NaN stays one
  else bits += 0x7fff + ((bits >> 16) & 1);  // to the nearest, halves to even
  uint16_t upper = bits >> 16;
  __bf16 result;
  memcpy(&result, &upper, sizeof result);
  return result;
}
extern "C" __attribute__((visibility("default"))) __bf16 __truncdfbf2(double value) {
  return __truncsfbf2((float)value);
}
