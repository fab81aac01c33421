// CUDA C++ on the CPU, for tests: a kernel's source compiles unchanged against this header. Blocks run
// one after the other, the threads of a block as fibers that change at collectives, so a run is
// deterministic; a seed other than 0 runs them in a random order, under which a kernel without races
// gives the same results.
//
// - A collective that lanes named in its mask do not reach ends the program with status 3 and a message
//   that names lines and lanes.
// - Compiled with -fsanitize=address, buffers and dynamic shared memory have exactly the bytes that were
//   asked for, and each static shared array stands apart: access outside ends the program.
// - Dynamic shared memory is declared as DYNAMIC_SHARED(type, name), which is
//   `extern __shared__ type name[]` on a device.
// - Atomics are plain: one thread of the machine runs all fibers.
//
// machine.h runs the threads, launch.h is the program.
#pragma once
#include "machine.h"

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __shared__ static
#define DYNAMIC_SHARED(type, name) type* name = (type*)emulation::dynamic_shared()

struct uint2 { unsigned x, y; } __attribute__((aligned(8)));
struct uint4 { unsigned x, y, z, w; } __attribute__((aligned(16)));
struct ulonglong2 { unsigned long long x, y; } __attribute__((aligned(16)));
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
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
#define blockIdx (emulation::machine.block_index)
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

// Atomics: the value before.
#define EMULATION_ATOMIC(name, expression)                                       \
    template <typename T, typename V>                                            \
    T name(T* at, V with, EMULATION_LINE) {                                      \
        (void)line;                                                              \
        T old = *at, value = (T)with;                                            \
        *at = (T)(expression);                                                   \
        return old;                                                              \
    }
EMULATION_ATOMIC(atomicAdd, old + value)
EMULATION_ATOMIC(atomicSub, old - value)
EMULATION_ATOMIC(atomicExch, value)
EMULATION_ATOMIC(atomicMin, old < value ? old : value)
EMULATION_ATOMIC(atomicMax, old > value ? old : value)
EMULATION_ATOMIC(atomicAnd, old & value)
EMULATION_ATOMIC(atomicOr, old | value)
EMULATION_ATOMIC(atomicXor, old ^ value)
template <typename T, typename V, typename W>
T atomicCAS(T* at, V expected, W value) {
    T old = *at;
    if (old == (T)expected) *at = (T)value;
    return old;
}

// Memory.
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
template <typename T>
T __ldg(const T* at) { return *at; }
template <typename T>
T __ldcg(const T* at) { return *at; }
template <typename T>
T __ldcs(const T* at) { return *at; }
template <typename T>
void __stcs(T* at, T value) { *at = value; }
template <typename T>
void __stcg(T* at, T value) { *at = value; }

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
inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((uint64_t)x * y >> 32); }

