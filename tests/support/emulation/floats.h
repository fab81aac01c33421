// Arithmetic that C++ has under other names, or not at all. Part of cuda.h.
#pragma once

namespace emulation {

template <typename To, typename From>
To same_bits(From value) {
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To result;
    memcpy(&result, &value, sizeof result);
    return result;
}

// The neighbour above, if `rounded` is below the exact result; `above` says by how much it is.
inline float up(float rounded, double above) {
    return above > 0 ? nextafterf(rounded, INFINITY) : rounded;
}
inline float down(float rounded, double above) {
    return above < 0 ? nextafterf(rounded, -INFINITY) : rounded;
}
// What is missing from the rounded sum, exactly: the sum of two floats, and the error of that sum.
inline double missing_of_sum(float a, float b, float rounded) {
    double sum = (double)a + b, part = sum - a;
    double error = ((double)a - (sum - part)) + ((double)b - part);
    double difference = sum - rounded;
    return difference != 0 ? difference : error;
}
inline double missing_of_product(float a, float b, float rounded) { return (double)a * b - rounded; }
inline double missing_of_quotient(float a, float b, float rounded) {
    double rest = a - (double)rounded * b;
    return b < 0 ? -rest : rest;
}

}  // namespace emulation

inline unsigned __float_as_uint(float x) { return emulation::same_bits<unsigned>(x); }
inline int __float_as_int(float x) { return emulation::same_bits<int>(x); }
inline float __uint_as_float(unsigned x) { return emulation::same_bits<float>(x); }
inline float __int_as_float(int x) { return emulation::same_bits<float>(x); }
inline long long __double_as_longlong(double x) { return emulation::same_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return emulation::same_bits<double>(x); }

// To the nearest; compiled with -ffp-contract=off no two of them become one.
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }

// Up and down; results whose error is no double, beyond the range of floats, are not rounded.
inline float __fadd_ru(float a, float b) { return emulation::up(a + b, emulation::missing_of_sum(a, b, a + b)); }
inline float __fadd_rd(float a, float b) { return emulation::down(a + b, emulation::missing_of_sum(a, b, a + b)); }
inline float __fsub_ru(float a, float b) { return __fadd_ru(a, -b); }
inline float __fsub_rd(float a, float b) { return __fadd_rd(a, -b); }
inline float __fmul_ru(float a, float b) { return emulation::up(a * b, emulation::missing_of_product(a, b, a * b)); }
inline float __fmul_rd(float a, float b) { return emulation::down(a * b, emulation::missing_of_product(a, b, a * b)); }
inline float __fdiv_ru(float a, float b) { return emulation::up(a / b, emulation::missing_of_quotient(a, b, a / b)); }
inline float __fdiv_rd(float a, float b) { return emulation::down(a / b, emulation::missing_of_quotient(a, b, a / b)); }
inline float __frcp_ru(float a) { return __fdiv_ru(1.0f, a); }
inline float __frcp_rd(float a) { return __fdiv_rd(1.0f, a); }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

// A float becomes the nearest number of its range, and no number 0.
namespace emulation {
template <typename To>
To number_of(double x) {
    if (!(x == x)) return 0;
    if (x <= (double)std::numeric_limits<To>::min()) return std::numeric_limits<To>::min();
    if (x >= (double)std::numeric_limits<To>::max()) return std::numeric_limits<To>::max();
    return (To)x;
}
}  // namespace emulation
inline unsigned __float2uint_rn(float x) { return emulation::number_of<unsigned>(nearbyint((double)x)); }
inline unsigned __float2uint_rz(float x) { return emulation::number_of<unsigned>(trunc((double)x)); }
inline unsigned __float2uint_ru(float x) { return emulation::number_of<unsigned>(ceil((double)x)); }
inline unsigned __float2uint_rd(float x) { return emulation::number_of<unsigned>(floor((double)x)); }
inline int __float2int_rn(float x) { return emulation::number_of<int>(nearbyint((double)x)); }
inline int __float2int_rz(float x) { return emulation::number_of<int>(trunc((double)x)); }
inline int __float2int_ru(float x) { return emulation::number_of<int>(ceil((double)x)); }
inline int __float2int_rd(float x) { return emulation::number_of<int>(floor((double)x)); }
inline float __uint2float_rn(unsigned x) { return (float)x; }
inline float __int2float_rn(int x) { return (float)x; }
inline float __uint2float_ru(unsigned x) { return emulation::up((float)x, (double)x - (float)x); }
inline float __uint2float_rd(unsigned x) { return emulation::down((float)x, (double)x - (float)x); }
inline float __uint2float_rz(unsigned x) { return __uint2float_rd(x); }
inline float __double2float_rn(double x) { return (float)x; }

// The smaller and the greater one, of numbers of one type or of two.
template <typename A, typename B>
typename std::common_type<A, B>::type min(A a, B b) {
    typedef typename std::common_type<A, B>::type T;
    return (T)a < (T)b ? (T)a : (T)b;
}
template <typename A, typename B>
typename std::common_type<A, B>::type max(A a, B b) {
    typedef typename std::common_type<A, B>::type T;
    return (T)a > (T)b ? (T)a : (T)b;
}

// Several numbers in a word.
#define EMULATION_PACKED(name, bits, expression)                           \
    inline unsigned name(unsigned x, unsigned y) {                         \
        unsigned result = 0, mask = (1u << bits) - 1;                      \
        for (int i = 0; i < 32; i += bits) {                               \
            unsigned a = x >> i & mask, b = y >> i & mask;                 \
            result |= ((expression) & mask) << i;                          \
        }                                                                  \
        return result;                                                     \
    }
EMULATION_PACKED(__vadd2, 16, a + b)
EMULATION_PACKED(__vadd4, 8, a + b)
EMULATION_PACKED(__vaddus2, 16, a + b > mask ? mask : a + b)
EMULATION_PACKED(__vaddus4, 8, a + b > mask ? mask : a + b)
EMULATION_PACKED(__vmaxu2, 16, a > b ? a : b)
EMULATION_PACKED(__vmaxu4, 8, a > b ? a : b)
EMULATION_PACKED(__vminu2, 16, a < b ? a : b)
EMULATION_PACKED(__vminu4, 8, a < b ? a : b)
EMULATION_PACKED(__vcmpgeu2, 16, a >= b ? mask : 0)
EMULATION_PACKED(__vcmpgeu4, 8, a >= b ? mask : 0)
