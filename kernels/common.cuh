// What every kernel is written with. It stands before the text of each source.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define ALL 0xffffffffu
#define NONE 0xffffffffu

// Shared memory is dynamic, and one struct a kernel: SHARED(Tables, tables) is a reference to it. The
// launch passes its bytes, which SHARED_IS compares. DYNAMIC_SHARED(u32, values) is an array instead, of as many
// bytes as the launch passes. A SHARED_GAP between two of its arrays is nothing on
// a device; the emulation of the tests, which has definitions of its own, lets nobody touch it.
#ifndef SHARED
#define SHARED(type, name)                                    \
    extern __shared__ __align__(16) unsigned char shared_memory[]; \
    type& name = *(type*)shared_memory
#define DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) type name[]
#define SHARED_GAP
#define SHARED_IS(type, bytes) static_assert(sizeof(type) == (bytes), "the launch passes other bytes")
#endif

__device__ __forceinline__ u32 lane_of() { return threadIdx.x & 31; }

