// The best k of a query, by bitonic sorts: of a round with a key a thread, exchanged by shuffles
// within a warp (Demouth, 2013), and of these and the best so far.

__device__ __forceinline__ u64 chosen(u64 key, u64 other, bool greater) { return key > other == greater ? key : other; }

// Sorts the first `count` keys, a power of two up to blockDim.x, greatest first. By a block.
__device__ __forceinline__ void sort_round(u64* keys, u32 count) {
    u32 i = threadIdx.x;
    u64 key = keys[i];
    for (u32 size = 2; size <= count; size *= 2) {
        for (u32 step = size / 2; step > 0; step /= 2) {
            u64 other;
            if (step < 32) {
                other = __shfl_xor_sync(ALL, key, step);
            } else {
                __syncthreads();
                keys[i] = key;
                __syncthreads();
                other = keys[i ^ step];
            }
            key = chosen(key, other, ((i & step) == 0) == ((i & size) == 0));
        }
    }
    __syncthreads();
    keys[i] = key;
    __syncthreads();
}

// Merges the first `count` keys, sorted as `best` [capacity] is, into this. All threads of a block,
// which have to synchronise before they read it.
__device__ __forceinline__ void merge_round(u64* best, u32 capacity, const u64* keys, u32 count) {
    // The greater of both in opposite orders is a bitonic sequence.
    for (u32 i = threadIdx.x; i < capacity; i += blockDim.x) {
        u32 from_end = capacity - 1 - i;
        if (from_end < count && keys[from_end] > best[i]) best[i] = keys[from_end];
    }
    __syncthreads();
    if (capacity <= 32) {
        if (threadIdx.x >= 32) return;
        u64 key = lane_of() < capacity ? best[lane_of()] : 0;
        for (u32 step = capacity / 2; step > 0; step /= 2) {
            u64 other = __shfl_xor_sync(ALL, key, step);
            key = chosen(key, other, (lane_of() & step) == 0);
        }
        if (lane_of() < capacity) best[lane_of()] = key;
        return;
    }
    for (u32 step = capacity / 2; step > 0; step /= 2) {
        for (u32 pair = threadIdx.x; pair < capacity / 2; pair += blockDim.x) {
            u32 low = 2 * step * (pair / step) + pair % step;
            u64 a = best[low], b = best[low + step];
            best[low] = a > b ? a : b;
            best[low + step] = a > b ? b : a;
        }
        __syncthreads();
    }
}
