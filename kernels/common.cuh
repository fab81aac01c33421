// Declarations that every kernel uses; this stands before the text of each source.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define ALL 0xffffffffu
#define NONE 0xffffffffu

// Shared memory is dynamic, and one struct a kernel: SHARED(Tables, tables) is a reference to it.
// The launch passes its bytes, which SHARED_IS compares. DYNAMIC_SHARED(u32, values) is an array
// instead, of as many bytes as the launch passes. SHARED_GAP is nothing on a device; the tests'
// emulation, which defines all of these again, lets nobody touch it.
#ifndef SHARED
#define SHARED(type, name)                                    \
    extern __shared__ __align__(16) unsigned char shared_memory[]; \
    type& name = *(type*)shared_memory
#define DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) type name[]
#define SHARED_GAP
#define SHARED_IS(type, bytes) static_assert(sizeof(type) == (bytes), "the launch passes other bytes")
#endif

__device__ __forceinline__ u32 lane_of() { return threadIdx.x & 31; }

// The sum of the values of the lanes up to this one.
__device__ __forceinline__ u32 sums_of_warp(u32 value) {
    for (u32 step = 1; step < 32; step *= 2) {
        u32 other = __shfl_up_sync(ALL, value, step);
        if (lane_of() >= step) value += other;
    }
    return value;
}

// The sum of the values of a block's threads up to this one, and of all; `room` [32]: the block's.
__device__ __forceinline__ u32 sums_of_block(u32* room, u32 value, u32& total) {
    u32 warp = threadIdx.x / 32, before = 0, upto = sums_of_warp(value);
    __syncthreads();
    if (lane_of() == 31) room[warp] = upto;
    __syncthreads();
    total = 0;
    for (u32 w = 0; w < blockDim.x / 32; w++) {
        if (w < warp) before += room[w];
        total += room[w];
    }
    return before + upto;
}

// The first place from `low` to before `high` whose value is not below `value`, or `high`.
template <typename T>
__device__ __forceinline__ u32 find(const T* values, u32 low, u32 high, T value) {
    while (low < high) {
        u32 middle = low + (high - low) / 2;
        if (values[middle] < value) low = middle + 1;
        else high = middle;
    }
    return low;
}

// The part that holds `value`, by `starts` [count + 1], the last being the end; some may be empty.
__device__ __forceinline__ u32 part_of(const u32* __restrict__ starts, u32 count, u32 value) {
    u32 low = 0, high = count;
    while (low + 1 < high) {
        u32 middle = low + (high - low) / 2;
        if (starts[middle] <= value) low = middle;
        else high = middle;
    }
    return low;
}

