// Kernels whose blocks need each other, whose threads wait, and those that use shared memory in all
// ways.

typedef unsigned u32;
typedef unsigned long long u64;

// Each block waits for the one before it: flags [blocks], order [blocks].
extern "C" __global__ void chain(volatile u32* flags, u32* order, u32* next) {
    if (threadIdx.x == 0) {
        if (blockIdx.x > 0) {
            while (flags[blockIdx.x - 1] == 0) {}
        }
        order[blockIdx.x] = atomicAdd(next, 1u);
        __threadfence();
        flags[blockIdx.x] = 1;
    }
}

// Adds without an atomic: blocks lose what others add.
extern "C" __global__ void lost_update(u32* sum) {
    if (threadIdx.x == 0) {
        u32 before = __ldcg(sum);
        for (int i = 0; i < 20; i++) before += i == 0;
        *sum = before + 0;
    }
}

// The last block to come sees what all have written. values [blocks], out [1].
extern "C" __global__ void last_block(u32* values, u32* arrived, u32* out) {
    struct Memory {
        u32 is_last;
    };
    SHARED(Memory, memory);
    if (threadIdx.x == 0) {
        values[blockIdx.x] = blockIdx.x + 1;
        __threadfence();
        memory.is_last = atomicAdd(arrived, 1u) + 1 == gridDim.x;
    }
    __syncthreads();
    if (memory.is_last && threadIdx.x == 0) {
        u32 sum = 0;
        for (u32 i = 0; i < gridDim.x; i++) sum += values[i];
        atomicAdd(out, sum);
    }
}

struct Tables {
    u32 first[33];
    SHARED_GAP
    u64 second[32];
};
SHARED_IS(Tables, 33 * 4 + 4 + 32 * 8);

// Each block has its own struct. out [blocks * threads]
extern "C" __global__ void own_shared(u32* out) {
    SHARED(Tables, tables);
    tables.first[threadIdx.x] = blockIdx.x * 1000 + threadIdx.x;
    tables.second[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[blockIdx.x * 32 + threadIdx.x] = tables.first[31 - threadIdx.x] + (u32)tables.second[threadIdx.x];
}

// Through a pointer, one behind the first array.
extern "C" __global__ void beyond_array(u32* out, u32 behind) {
    SHARED(Tables, tables);
    u32* first = tables.first;
    first[threadIdx.x + behind] = 1;
    out[threadIdx.x] = (u32)tables.second[0];
}

// What nobody wrote.
extern "C" __global__ void unwritten(u32* out) {
    SHARED(Tables, tables);
    out[threadIdx.x] = tables.first[threadIdx.x];
}

// A word at a place that is no multiple of its size.
extern "C" __global__ void misaligned(u32* out, u32 place) {
    out[0] = *(const u32*)((const char*)out + place);
}

// A word counts what its address says; the numbers of all kinds of arguments.
extern "C" __global__ void arguments(u32* out, u32 a, u64 b, float c) {
    out[0] = a;
    out[1] = (u32)(b >> 32);
    out[2] = __float_as_uint(c);
}
