// Kernels that tests of the emulation launch: some are right, the others each have one fault.

typedef unsigned u32;

// Every collective once, by warps of a block of any size that is a multiple of 32. out [threads *
// 16].
extern "C" __global__ void collectives(u32* out) {
    DYNAMIC_SHARED(u32, dynamic);
    u32* fixed = dynamic + blockDim.x;
    u32 t = threadIdx.x, lane = t % 32, all = 0xffffffff;
    u32* own = out + (blockIdx.x * blockDim.x + t) * 16;
    fixed[t] = t * 3;
    dynamic[t] = t * 5;
    __syncthreads();
    u32 other = blockDim.x - 1 - t;
    own[0] = fixed[other] + dynamic[other];
    own[1] = __shfl_sync(all, t * 7, (lane + 3) % 32);
    own[2] = __shfl_up_sync(all, t, 4);
    own[3] = __shfl_down_sync(all, t, 4);
    own[4] = __shfl_xor_sync(all, t, 16, 16);
    own[5] = __ballot_sync(all, lane % 3 == 0);
    own[6] = __any_sync(all, lane == 5) * 2 + __all_sync(all, lane < 31);
    own[7] = __match_any_sync(all, lane / 7);
    // Lanes that part meet in groups of their own.
    if (lane % 2 == 0) {
        own[8] = __reduce_add_sync(0x55555555, lane);
    } else {
        own[8] = __reduce_max_sync(0xaaaaaaaa, lane);
    }
    __syncwarp();
    own[9] = atomicAdd(&dynamic[0], 1u) < 4096;
    own[10] = __syncthreads_count(t % 4 == 0);
    own[11] = dynamic[0];
    own[12] = __funnelshift_r(0x44332211u, 0x88776655u, 8);
    own[13] = __byte_perm(0x44332211u, 0x88776655u, 0x0437);
    own[14] = __popc(t) + 100 * __clz(t) + 10000 * __ffs(t);
    own[15] = (u32)__shfl_down_sync(all, 1ull << 40 | t, 1, 8);
}

// Lane 7 leaves before the ballot that waits for it.
extern "C" __global__ void lane_left(u32* out) {
    if (threadIdx.x == 7) return;
    out[threadIdx.x] = __ballot_sync(0xffffffff, 1);
}

// Lane 3 waits at another collective than the others.
extern "C" __global__ void lane_elsewhere(u32* out) {
    if (threadIdx.x == 3) {
        __syncwarp();
    } else {
        out[threadIdx.x] = __shfl_sync(0xffffffff, 1u, 0);
    }
}

// A lane that the mask does not name.
extern "C" __global__ void lane_unnamed(u32* out) { out[threadIdx.x] = __ballot_sync(0x7fffffff, 1); }

// A value of a lane that does not take part.
extern "C" __global__ void lane_asked(u32* out) {
    if (threadIdx.x < 8) out[threadIdx.x] = __shfl_sync(0xff, 1u, 8);
}

// One warp never comes to the barrier.
extern "C" __global__ void warp_missing(u32* out) {
    if (threadIdx.x >= 32) {
        __syncthreads();
    } else {
        out[threadIdx.x] = __ballot_sync(0xffffffff, 1) + __shfl_sync(1u, 1u, 0);
    }
}

struct Values {
    u32 values[32];
    SHARED_GAP
    u32 others[32];
};

// One behind the end of a buffer, of an array in shared memory, and of shared memory.
extern "C" __global__ void beyond_buffer(u32* out) { out[threadIdx.x + 1] = 1; }
extern "C" __global__ void beyond_shared(u32* out) {
    SHARED(Values, shared);
    shared.values[threadIdx.x + 1] = threadIdx.x;
    __syncwarp();
    out[threadIdx.x] = shared.values[threadIdx.x];
}
extern "C" __global__ void beyond_dynamic(u32* out) {
    DYNAMIC_SHARED(u32, values);
    values[threadIdx.x + 1] = threadIdx.x;
    __syncwarp();
    out[threadIdx.x] = values[threadIdx.x];
}

// Neighbours exchange values, and forget to wait for each other.
extern "C" __global__ void race(u32* out) {
    SHARED(Values, shared);
    shared.values[threadIdx.x] = threadIdx.x * 11;
    out[threadIdx.x] = shared.values[(threadIdx.x + 31) % 32];
}
