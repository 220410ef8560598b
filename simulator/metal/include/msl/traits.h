// metal_type_traits and metal_limits.
#pragma once
#include "base.h"

// The compiler makes an initializer list for braces, and knows it by this name only.
namespace std {
template <class T> class initializer_list {
  const T* first;
  size_t count;

public:
  constexpr initializer_list() : first(nullptr), count(0) {}
  constexpr size_t size() const { return count; }
  constexpr const T* begin() const { return first; }
  constexpr const T* end() const { return first + count; }
};
} // namespace std

namespace metal {
using std::initializer_list;

template <class T, T v> struct integral_constant {
  MSL_STATIC_CONSTEXPR T value = v;
  typedef T value_type;
  typedef integral_constant type;
  constexpr operator T() const { return v; }
  constexpr T operator()() const { return v; }
};
template <bool b> using bool_constant = integral_constant<bool, b>;
typedef bool_constant<true> true_type;
typedef bool_constant<false> false_type;

template <bool c, class A, class B> struct conditional { typedef A type; };
template <class A, class B> struct conditional<false, A, B> { typedef B type; };
template <bool c, class A, class B> using conditional_t = typename conditional<c, A, B>::type;
template <bool c, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <bool c, class T = void> using enable_if_t = typename enable_if<c, T>::type;

template <class A, class B> struct is_same : false_type {};
template <class A> struct is_same<A, A> : true_type {};
template <class A, class B> MSL_CONSTANT bool is_same_v = is_same<A, B>::value;

template <class T> struct remove_reference { typedef T type; };
template <class T> struct remove_reference<T&> { typedef T type; };
template <class T> struct remove_reference<T&&> { typedef T type; };
template <class T> using remove_reference_t = typename remove_reference<T>::type;

template <class T> struct remove_addrspace { typedef T type; };
#ifdef MSL_STRICT
#define MSL_REMOVE(space) \
  template <class T> struct remove_addrspace<space T> { typedef T type; }; \
  template <class T> struct remove_addrspace<const space T> { typedef const T type; };
MSL_REMOVE(device) MSL_REMOVE(__global) MSL_REMOVE(__local) MSL_REMOVE(__private) MSL_REMOVE(__generic)
#undef MSL_REMOVE
#endif
template <class T> using remove_addrspace_t = typename remove_addrspace<T>::type;

template <class T> struct msl_unqualified { typedef T type; };
template <class T> struct msl_unqualified<const T> { typedef T type; };
template <class T> struct msl_unqualified<volatile T> { typedef T type; };
template <class T> struct msl_unqualified<const volatile T> { typedef T type; };
template <class T> struct remove_cv { typedef typename msl_unqualified<remove_addrspace_t<T>>::type type; };
template <class T> using remove_cv_t = typename remove_cv<T>::type;
template <class T> struct remove_const { typedef T type; };
template <class T> struct remove_const<const T> { typedef T type; };
template <class T> using remove_const_t = typename remove_const<T>::type;
template <class T> struct remove_volatile { typedef T type; };
template <class T> struct remove_volatile<volatile T> { typedef T type; };
template <class T> using remove_volatile_t = typename remove_volatile<T>::type;
template <class T> struct add_const { typedef const T type; };
template <class T> using add_const_t = const T;
template <class T> struct decay { typedef remove_cv_t<remove_reference_t<T>> type; };
template <class T> using decay_t = typename decay<T>::type;
template <class T> struct remove_pointer { typedef T type; };
template <class T> struct remove_pointer<T*> { typedef T type; };
template <class T> using remove_pointer_t = typename remove_pointer<T>::type;
template <class T> struct add_pointer { typedef remove_reference_t<T>* type; };
template <class T> using add_pointer_t = typename add_pointer<T>::type;
template <class T> struct remove_extent { typedef T type; };
template <class T, size_t N> struct remove_extent<T[N]> { typedef T type; };
template <class T> using remove_extent_t = typename remove_extent<T>::type;

template <class T> struct is_pointer : false_type {};
template <class T> struct is_pointer<T*> : true_type {};
template <class T> struct is_reference : false_type {};
template <class T> struct is_reference<T&> : true_type {};
template <class T> struct is_reference<T&&> : true_type {};
template <class T> struct is_array : false_type {};
template <class T, size_t N> struct is_array<T[N]> : true_type {};
template <class T> struct is_const : false_type {};
template <class T> struct is_const<const T> : true_type {};
template <class T> struct is_volatile : false_type {};
template <class T> struct is_volatile<volatile T> : true_type {};

template <class T> struct msl_is_integer : false_type {};
template <class T> struct msl_is_float : false_type {};
#define MSL_IS_INTEGER(t) template <> struct msl_is_integer<t> : true_type {};
MSL_IS_INTEGER(bool) MSL_IS_INTEGER(signed char) MSL_EACH_INTEGER(MSL_IS_INTEGER)
#undef MSL_IS_INTEGER
template <> struct msl_is_float<float> : true_type {};
template <> struct msl_is_float<half> : true_type {};
template <> struct msl_is_float<bfloat> : true_type {};

template <class T, int N> struct vec;
template <class T, int N> struct packed_vec;
template <class T> struct is_vector : false_type {};
template <class T, int N> struct is_vector<vec<T, N>> : true_type {};
template <class T> struct make_scalar { typedef T type; };
template <class T, int N> struct make_scalar<vec<T, N>> { typedef T type; };
template <class T> using make_scalar_t = typename make_scalar<T>::type;
template <class T, int N> struct make_vec { typedef vec<T, N> type; };
template <class T, int N> using make_vec_t = vec<T, N>;

template <class T> struct is_integral : bool_constant<msl_is_integer<make_scalar_t<remove_cv_t<T>>>::value> {};
template <class T> struct is_floating_point : bool_constant<msl_is_float<make_scalar_t<remove_cv_t<T>>>::value> {};
template <class T> struct is_arithmetic : bool_constant<is_integral<T>::value || is_floating_point<T>::value> {};
template <class T> struct is_scalar : bool_constant<is_arithmetic<T>::value && !is_vector<remove_cv_t<T>>::value> {};
template <class T> struct is_signed : bool_constant<(make_scalar_t<T>(-1) < make_scalar_t<T>(0))> {};
template <> struct is_signed<bool> : false_type {};
template <class T> struct is_unsigned : bool_constant<is_integral<T>::value && !is_signed<T>::value> {};
template <class T> struct is_enum : bool_constant<__is_enum(T)> {};
template <class T> struct is_class : bool_constant<__is_class(T)> {};
template <class T> struct is_void : is_same<remove_cv_t<T>, void> {};
template <class T> struct is_trivially_copyable : bool_constant<__is_trivially_copyable(T)> {};
template <class A, class B> struct is_base_of : bool_constant<__is_base_of(A, B)> {};
template <class A, class B> struct is_convertible : bool_constant<__is_convertible(A, B)> {};
template <class T> struct underlying_type { typedef __underlying_type(T) type; };
template <class T> using underlying_type_t = typename underlying_type<T>::type;

#define MSL_TRAIT_VALUE(trait) template <class T> MSL_CONSTANT bool trait##_v = trait<T>::value;
MSL_TRAIT_VALUE(is_pointer) MSL_TRAIT_VALUE(is_reference) MSL_TRAIT_VALUE(is_array) MSL_TRAIT_VALUE(is_const)
MSL_TRAIT_VALUE(is_volatile) MSL_TRAIT_VALUE(is_vector) MSL_TRAIT_VALUE(is_integral)
MSL_TRAIT_VALUE(is_floating_point) MSL_TRAIT_VALUE(is_arithmetic) MSL_TRAIT_VALUE(is_scalar)
MSL_TRAIT_VALUE(is_signed) MSL_TRAIT_VALUE(is_unsigned) MSL_TRAIT_VALUE(is_enum) MSL_TRAIT_VALUE(is_class)
MSL_TRAIT_VALUE(is_void) MSL_TRAIT_VALUE(is_trivially_copyable)
#undef MSL_TRAIT_VALUE
template <class A, class B> MSL_CONSTANT bool is_base_of_v = is_base_of<A, B>::value;
template <class A, class B> MSL_CONSTANT bool is_convertible_v = is_convertible<A, B>::value;

template <class T> struct make_unsigned { typedef T type; };
template <class T> struct make_signed { typedef T type; };
#define MSL_SIGNS(s, u) \
  template <> struct make_unsigned<s> { typedef u type; }; \
  template <> struct make_signed<u> { typedef s type; };
MSL_SIGNS(char, uchar) MSL_SIGNS(short, ushort) MSL_SIGNS(int, uint) MSL_SIGNS(long, ulong)
#undef MSL_SIGNS
template <class T> using make_unsigned_t = typename make_unsigned<T>::type;
template <class T> using make_signed_t = typename make_signed<T>::type;

template <class...> struct disjunction : false_type {};
template <class B> struct disjunction<B> : B {};
template <class B, class... R>
struct disjunction<B, R...> : conditional_t<bool(B::value), B, disjunction<R...>> {};
template <class...> struct conjunction : true_type {};
template <class B> struct conjunction<B> : B {};
template <class B, class... R>
struct conjunction<B, R...> : conditional_t<bool(B::value), conjunction<R...>, B> {};
template <class B> struct negation : bool_constant<!bool(B::value)> {};
template <class... B> MSL_CONSTANT bool disjunction_v = disjunction<B...>::value;
template <class... B> MSL_CONSTANT bool conjunction_v = conjunction<B...>::value;
template <class B> MSL_CONSTANT bool negation_v = !bool(B::value);
template <class... B> using _disjunction = disjunction<B...>;
template <class... B> using _conjunction = conjunction<B...>;

template <class T> T&& declval();
template <class F, class... A> struct invoke_result { typedef decltype(declval<F>()(declval<A>()...)) type; };
template <class F, class... A> using invoke_result_t = typename invoke_result<F, A...>::type;
template <class F, class... A> struct result_of { typedef decltype(declval<F>()(declval<A>()...)) type; };

template <class T, T... I> struct integer_sequence {
  typedef T value_type;
  static constexpr size_t size() { return sizeof...(I); }
};
template <size_t... I> using index_sequence = integer_sequence<size_t, I...>;
template <class T, T N> using make_integer_sequence = __make_integer_seq<integer_sequence, T, N>;
template <size_t N> using make_index_sequence = make_integer_sequence<size_t, N>;
template <class... T> using index_sequence_for = make_index_sequence<sizeof...(T)>;

template <class T> constexpr remove_reference_t<T>&& move(T&& t) { return static_cast<remove_reference_t<T>&&>(t); }
template <class T> inline void swap(MSL_GENERIC T& a, MSL_GENERIC T& b) {
  T t = a;
  a = b;
  b = t;
}

// ---- limits
// Programs specialize both: the public one, and the one inside of Apple's headers.
template <class T> struct _numeric_limits_impl { MSL_STATIC_CONSTEXPR bool is_specialized = false; };
template <class T> struct numeric_limits : _numeric_limits_impl<remove_cv_t<T>> {};
#define MSL_INTEGER_LIMITS(t, lo, hi, bits, is_signed_) \
  template <> struct _numeric_limits_impl<t> { \
    MSL_STATIC_CONSTEXPR bool is_specialized = true; \
    MSL_STATIC_CONSTEXPR bool is_integer = true; \
    MSL_STATIC_CONSTEXPR bool is_exact = true; \
    MSL_STATIC_CONSTEXPR bool is_signed = is_signed_; \
    MSL_STATIC_CONSTEXPR bool has_infinity = false; \
    MSL_STATIC_CONSTEXPR bool has_quiet_NaN = false; \
    MSL_STATIC_CONSTEXPR int digits = bits; \
    static constexpr t min() { return lo; } \
    static constexpr t lowest() { return lo; } \
    static constexpr t max() { return hi; } \
    static constexpr t epsilon() { return 0; } \
    static constexpr t infinity() { return 0; } \
    static constexpr t quiet_NaN() { return 0; } \
  };
MSL_INTEGER_LIMITS(bool, false, true, 1, false)
MSL_INTEGER_LIMITS(char, CHAR_MIN, CHAR_MAX, 7, true)
MSL_INTEGER_LIMITS(signed char, SCHAR_MIN, SCHAR_MAX, 7, true)
MSL_INTEGER_LIMITS(uchar, 0, UCHAR_MAX, 8, false)
MSL_INTEGER_LIMITS(short, SHRT_MIN, SHRT_MAX, 15, true)
MSL_INTEGER_LIMITS(ushort, 0, USHRT_MAX, 16, false)
MSL_INTEGER_LIMITS(int, INT_MIN, INT_MAX, 31, true)
MSL_INTEGER_LIMITS(uint, 0, UINT_MAX, 32, false)
MSL_INTEGER_LIMITS(long, LONG_MIN, LONG_MAX, 63, true)
MSL_INTEGER_LIMITS(ulong, 0, ULONG_MAX, 64, false)
#undef MSL_INTEGER_LIMITS
#define MSL_FLOAT_LIMITS(t, smallest, largest, eps, bits, denormal, min_exp, max_exp) \
  template <> struct _numeric_limits_impl<t> { \
    MSL_STATIC_CONSTEXPR bool is_specialized = true; \
    MSL_STATIC_CONSTEXPR bool is_integer = false; \
    MSL_STATIC_CONSTEXPR bool is_exact = false; \
    MSL_STATIC_CONSTEXPR bool is_signed = true; \
    MSL_STATIC_CONSTEXPR bool has_infinity = true; \
    MSL_STATIC_CONSTEXPR bool has_quiet_NaN = true; \
    MSL_STATIC_CONSTEXPR int digits = bits; \
    MSL_STATIC_CONSTEXPR int min_exponent = min_exp; \
    MSL_STATIC_CONSTEXPR int max_exponent = max_exp; \
    static constexpr t min() { return (t)smallest; } \
    static constexpr t lowest() { return (t)-largest; } \
    static constexpr t max() { return (t)largest; } \
    static constexpr t epsilon() { return (t)eps; } \
    static constexpr t infinity() { return (t)__builtin_inff(); } \
    static constexpr t quiet_NaN() { return (t)__builtin_nanf(""); } \
    static constexpr t signaling_NaN() { return (t)__builtin_nanf(""); } \
    static constexpr t denorm_min() { return (t)denormal; } \
  };
MSL_FLOAT_LIMITS(float, 1.175494351e-38f, 3.402823466e+38f, 1.19209290e-07f, 24, 1.401298464e-45f, -125, 128)
MSL_FLOAT_LIMITS(half, 6.103515625e-5f, 65504.0f, 9.765625e-4f, 11, 5.9604645e-8f, -13, 16)
MSL_FLOAT_LIMITS(bfloat, 1.175494351e-38f, 3.38953139e38f, 7.8125e-3f, 8, 9.183549615799121e-41f, -125, 128)
#undef MSL_FLOAT_LIMITS
} // namespace metal
