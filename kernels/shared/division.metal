// A GPU divides 64-bit integers in software, many times as slowly as 32-bit ones, and hardly any tensor needs it.
#include <metal_stdlib>
using namespace metal;

inline uint quotient(uint a, uint b) { return a / b; }
inline int quotient(int a, int b) { return a / b; }
inline ulong quotient(ulong a, ulong b) { return ((a | b) >> 32) == 0 ? ulong(uint(a) / uint(b)) : a / b; }

// Of what is not negative.
inline long quotient(long a, long b) { return long(quotient(ulong(a), ulong(b))); }
