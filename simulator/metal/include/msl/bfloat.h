// bfloat as Apple's compiler has it, for the strict pass: it converts implicitly to float alone, and neither float nor
// half converts implicitly to it (Metal Shading Language Specification 3.1, bfloat). Where code runs, bfloat is __bf16.
#pragma once

template <bool c, class T = int> struct msl_only_if {};
template <class T> struct msl_only_if<true, T> { typedef T type; };
template <class T, class U> constexpr bool msl_is = __is_same(T, U);
// Integers, and classes that convert to a number.
template <class T> constexpr bool msl_to_bfloat =
    __is_integral(T) || __is_enum(T) || (__is_class(T) && __is_convertible(T, float));
#define MSL_ONLY_IF(condition) typename msl_only_if<(condition)>::type = 0

#define MSL_BFLOAT_OPERATOR(R, op) \
  friend constexpr R operator op(bfloat a, bfloat b) { return R((float)a op (float)b); } \
  template <class T, MSL_ONLY_IF(__is_integral(T))> friend constexpr R operator op(bfloat a, T b) { \
    return a op bfloat(b); \
  } \
  template <class T, MSL_ONLY_IF(__is_integral(T))> friend constexpr R operator op(T a, bfloat b) { \
    return bfloat(a) op b; \
  }
#define MSL_BFLOAT_ASSIGNMENT(op) \
  friend constexpr bfloat& operator op##=(bfloat& a, bfloat b) { return a = a op b; }
struct bfloat {
  bfloat() = default;
  template <class T, MSL_ONLY_IF(msl_to_bfloat<T>)> constexpr bfloat(T x) : value((__bf16)(float)x) {}
  template <class T, MSL_ONLY_IF(!(msl_to_bfloat<T>) && __is_convertible(T, float))>
  constexpr explicit bfloat(T x) : value((__bf16)(float)x) {}
  constexpr operator float() const { return (float)value; }
  template <class T, MSL_ONLY_IF(__is_integral(T) || (msl_is<T, half>))> constexpr explicit operator T() const {
    return (T)(float)value;
  }
  constexpr bfloat operator-() const { return bfloat(-(float)value); }
  constexpr bfloat operator+() const { return *this; }
  constexpr bfloat& operator++() { return *this = bfloat((float)value + 1.0f); }
  constexpr bfloat& operator--() { return *this = bfloat((float)value - 1.0f); }

  // Friends, so that they are candidates only where an operand is a bfloat.
  MSL_BFLOAT_OPERATOR(bfloat, +) MSL_BFLOAT_OPERATOR(bfloat, -)
  MSL_BFLOAT_OPERATOR(bfloat, *) MSL_BFLOAT_OPERATOR(bfloat, /)
  MSL_BFLOAT_OPERATOR(bool, <) MSL_BFLOAT_OPERATOR(bool, >) MSL_BFLOAT_OPERATOR(bool, <=)
  MSL_BFLOAT_OPERATOR(bool, >=) MSL_BFLOAT_OPERATOR(bool, ==) MSL_BFLOAT_OPERATOR(bool, !=)
  MSL_BFLOAT_ASSIGNMENT(+) MSL_BFLOAT_ASSIGNMENT(-) MSL_BFLOAT_ASSIGNMENT(*) MSL_BFLOAT_ASSIGNMENT(/)

private:
  __bf16 value;
};
#undef MSL_BFLOAT_OPERATOR
#undef MSL_BFLOAT_ASSIGNMENT
#undef MSL_ONLY_IF
