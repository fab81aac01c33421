// CUDA C++ on the CPU, for tests: a kernel's source compiles unchanged against this header. The
// threads of several blocks run as fibers that change at collectives, at atomics and at some of
// their branches, so a run is deterministic: seed 0 runs two blocks in order, any other one two to
// eight in a random order and with random changes. A kernel without races gives the same results
// under all of them.
//
// - A collective that lanes named in its mask do not reach ends the program with status 3 and a
//   message that names lines and lanes.
// - Compiled with -fsanitize=address, buffers and shared memory have exactly the bytes that were
//   asked for, and access outside ends the program; so does a SHARED_GAP between two arrays of a
//   struct in shared memory. -fsanitize=alignment,bounds,shift-exponent end it at an access that a
//   device would refuse, behind the end of an array, and where a shift is as long as the number.
// - Shared memory is dynamic: SHARED(type, name) is a reference to a struct at its beginning,
//   DYNAMIC_SHARED(type, name) a pointer to it; kernels/common.cuh has them for devices. It begins
//   full of rubbish. A struct that does not fit the bytes of the launch is an error.
// - Atomics are plain: one thread of the machine runs all fibers. What other blocks have written is
//   seen at once, so a missing fence is not found.
//
// floats.h has arithmetic, machine.h the fibers, schedule.h runs them, launch.h is the program.
#pragma once
#include <cmath>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "schedule.h"

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __align__(bytes) __attribute__((aligned(bytes)))
// Blocks that run beside each other cannot have it.
#define __shared__ static_assert(false, "shared memory is SHARED or DYNAMIC_SHARED");
#define EMULATION_JOIN_(a, b) a##b
#define EMULATION_JOIN(a, b) EMULATION_JOIN_(a, b)
#define SHARED(type, name) type& name = emulation::shared_struct<type>()
#define DYNAMIC_SHARED(type, name) type* name = emulation::shared_array<type>()
#define SHARED_GAP emulation::Gap EMULATION_JOIN(gap_, __COUNTER__);
#define SHARED_IS(type, size) static_assert(true, "the launch is checked")

struct uint2 { unsigned x, y; } __attribute__((aligned(8)));
struct uint4 { unsigned x, y, z, w; } __attribute__((aligned(16)));
struct int2 { int x, y; } __attribute__((aligned(8)));
struct int4 { int x, y, z, w; } __attribute__((aligned(16)));
struct float2 { float x, y; } __attribute__((aligned(8)));
struct float4 { float x, y, z, w; } __attribute__((aligned(16)));
struct ushort2 { unsigned short x, y; } __attribute__((aligned(4)));
struct ushort4 { unsigned short x, y, z, w; } __attribute__((aligned(8)));
struct uchar4 { unsigned char x, y, z, w; } __attribute__((aligned(4)));
struct ulonglong2 { unsigned long long x, y; } __attribute__((aligned(16)));
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }

namespace emulation {

template <typename T>
uint64_t bits_of(T value) {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable<T>::value, "lanes pass 8 bytes at most");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}
template <typename T>
T value_of(uint64_t bits) {
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

}  // namespace emulation

#define threadIdx (emulation::machine.self->thread)
#define blockIdx (emulation::machine.self->block->index)
#define blockDim (emulation::machine.block_size)
#define gridDim (emulation::machine.grid_size)
#define warpSize 32

#define EMULATION_LINE int line = __builtin_LINE()

// Barriers and votes of a block.
inline void __syncthreads(EMULATION_LINE) { emulation::meet(emulation::BARRIER, 0, line); }
inline int __syncthreads_count(int p, EMULATION_LINE) {
    return (int)(emulation::meet(emulation::BARRIER, 0, line, p != 0) >> 32);
}
inline int __syncthreads_or(int p, EMULATION_LINE) { return __syncthreads_count(p, line) != 0; }
inline int __syncthreads_and(int p, EMULATION_LINE) {
    uint64_t met = emulation::meet(emulation::BARRIER, 0, line, p != 0);
    return met >> 32 == (met & 0xffffffff);
}

// Collectives of a warp.
inline void __syncwarp(unsigned mask = 0xffffffff, EMULATION_LINE) {
    emulation::meet(emulation::SYNC, mask, line);
}
#define EMULATION_SHUFFLE(name, kind)                                                                   \
    template <typename T>                                                                               \
    T name(unsigned mask, T value, unsigned lane, int width = 32, EMULATION_LINE) {                     \
        uint64_t bits = emulation::bits_of(value);                                                      \
        return emulation::value_of<T>(emulation::meet(emulation::kind, mask, line, bits, lane, width)); \
    }
EMULATION_SHUFFLE(__shfl_sync, SHFL)
EMULATION_SHUFFLE(__shfl_up_sync, SHFL_UP)
EMULATION_SHUFFLE(__shfl_down_sync, SHFL_DOWN)
EMULATION_SHUFFLE(__shfl_xor_sync, SHFL_XOR)
inline unsigned __ballot_sync(unsigned mask, int p, EMULATION_LINE) {
    return (unsigned)emulation::meet(emulation::BALLOT, mask, line, p != 0);
}
inline int __any_sync(unsigned mask, int p, EMULATION_LINE) { return __ballot_sync(mask, p, line) != 0; }
inline int __all_sync(unsigned mask, int p, EMULATION_LINE) { return __ballot_sync(mask, p, line) == mask; }
template <typename T>
unsigned __match_any_sync(unsigned mask, T value, EMULATION_LINE) {
    return (unsigned)emulation::meet(emulation::MATCH_ANY, mask, line, emulation::bits_of(value));
}
template <typename T>
unsigned __match_all_sync(unsigned mask, T value, int* all, EMULATION_LINE) {
    *all = __match_any_sync(mask, value, line) == mask;
    return *all ? mask : 0;
}
#define EMULATION_REDUCE(name, type, expression)                                                 \
    inline type name(unsigned mask, type value, EMULATION_LINE) {                                \
        auto reduce = [](uint64_t left, uint64_t right) -> uint64_t {                            \
            type a = (type)left, b = (type)right;                                                \
            return (uint64_t)(type)(expression);                                                 \
        };                                                                                       \
        return (type)emulation::meet(emulation::REDUCE, mask, line, (uint64_t)value, 0, 32, reduce); \
    }
EMULATION_REDUCE(__reduce_add_sync, unsigned, a + b)
EMULATION_REDUCE(__reduce_add_sync, int, (int)((unsigned)a + (unsigned)b))
EMULATION_REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
EMULATION_REDUCE(__reduce_min_sync, int, a < b ? a : b)
EMULATION_REDUCE(__reduce_max_sync, unsigned, a > b ? a : b)
EMULATION_REDUCE(__reduce_max_sync, int, a > b ? a : b)
EMULATION_REDUCE(__reduce_and_sync, unsigned, a & b)
EMULATION_REDUCE(__reduce_or_sync, unsigned, a | b)
EMULATION_REDUCE(__reduce_xor_sync, unsigned, a ^ b)

// Atomics: the value before. Another thread may run before and behind each.
#define EMULATION_ATOMIC(name, expression)       \
    template <typename T, typename V>            \
    T name(T* at, V with) {                      \
        emulation::may_change();                 \
        T old, value = (T)with;                  \
        {                                        \
            emulation::Whole step;               \
            old = *at;                           \
            *at = (T)(expression);               \
        }                                        \
        emulation::may_change();                 \
        return old;                              \
    }                                            \
    template <typename T, typename V>            \
    T name##_block(T* at, V with) {              \
        return name(at, with);                   \
    }
EMULATION_ATOMIC(atomicAdd, old + value)
EMULATION_ATOMIC(atomicSub, old - value)
EMULATION_ATOMIC(atomicExch, value)
EMULATION_ATOMIC(atomicMin, old < value ? old : value)
EMULATION_ATOMIC(atomicMax, old > value ? old : value)
EMULATION_ATOMIC(atomicAnd, old & value)
EMULATION_ATOMIC(atomicOr, old | value)
EMULATION_ATOMIC(atomicXor, old ^ value)
EMULATION_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
EMULATION_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
template <typename T, typename V, typename W>
T atomicCAS(T* at, V expected, W value) {
    emulation::may_change();
    T old;
    {
        emulation::Whole step;
        old = *at;
        if (old == (T)expected) *at = (T)value;
    }
    emulation::may_change();
    return old;
}

// Memory. A volatile load looks like any other one; the branch of a loop around it is where another
// thread may run.
inline void __threadfence() { emulation::may_change(); }
inline void __threadfence_block() { emulation::may_change(); }
inline void __threadfence_system() { emulation::may_change(); }
inline void __nanosleep(unsigned) { emulation::change(); }
template <typename T>
T __ldg(const T* at) { return *at; }
template <typename T>
T __ldcs(const T* at) { return *at; }
template <typename T>
T __ldca(const T* at) { return *at; }
// Those that see what others write.
template <typename T>
T __ldcg(const T* at) {
    emulation::may_change();
    return *at;
}
template <typename T>
T __ldcv(const T* at) { return __ldcg(at); }
template <typename T>
void __stcs(T* at, T value) { *at = value; }
template <typename T>
void __stcg(T* at, T value) { *at = value; }
template <typename T>
void __stwt(T* at, T value) { *at = value; }
// A clock that goes on whenever somebody looks at it.
inline long long clock64() {
    static long long now = 0;
    return ++now;
}
inline void __trap() { emulation::fail("__trap"); }

// Bits.
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
    unsigned y = 0;
    for (int i = 0; i < 32; i++) y |= (x >> i & 1) << (31 - i);
    return y;
}
inline unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31));
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((uint64_t)high << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    uint64_t bytes = (uint64_t)y << 32 | x;
    unsigned result = 0;
    for (int i = 0; i < 4; i++) {
        unsigned choice = selector >> (4 * i) & 15;
        unsigned byte = (unsigned)(bytes >> (8 * (choice & 7))) & 255;
        if (choice & 8) byte = byte & 128 ? 255 : 0;
        result |= byte << (8 * i);
    }
    return result;
}
// Two products of 16 and 8 bits.
inline unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) {
    return c + (a & 0xffff) * (b & 255) + (a >> 16) * (b >> 8 & 255);
}
inline unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) { return __dp2a_lo(a, b >> 16, c); }
inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((uint64_t)x * y >> 32); }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}

#include "floats.h"
