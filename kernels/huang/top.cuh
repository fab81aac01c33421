// The best k: each thread has a heap, least at the top, whose slots lie blockDim.x apart in the
// batch's memory; at the end a block merges those of its threads.

struct Heap {
    u64* keys;
    u32 len;
    u32 capacity;
    u64 least;         // only a greater key gets in: 0 while there is room
    u64 best;
};

__device__ __forceinline__ u64& slot(const Heap& heap, u32 n) { return heap.keys[(u64)n * blockDim.x]; }

// Replaces the least of the first `len` keys.
__device__ __forceinline__ void replace_least(const Heap& heap, u32 len, u64 key) {
    u32 n = 0;
#pragma unroll 1
    for (;;) {
        u32 child = 2 * n + 1;
        if (child >= len) break;
        u64 least = slot(heap, child);
        if (child + 1 < len) {
            u64 other = slot(heap, child + 1);
            if (other < least) {
                least = other;
                child++;
            }
        }
        if (key <= least) break;
        slot(heap, n) = least;
        n = child;
    }
    slot(heap, n) = key;
}

__device__ __forceinline__ void offer(Heap& heap, u64 key) {
    if (key <= heap.least) return;
    heap.best = key > heap.best ? key : heap.best;
    if (heap.len < heap.capacity) {
        u32 n = heap.len++;
#pragma unroll 1
        while (n > 0) {
            u32 parent = (n - 1) / 2;
            u64 other = slot(heap, parent);
            if (other <= key) break;
            slot(heap, n) = other;
            n = parent;
        }
        slot(heap, n) = key;
    } else {
        replace_least(heap, heap.len, key);
    }
    if (heap.len == heap.capacity) heap.least = slot(heap, 0);
}

// The best keys of all heaps, the greatest first; returns how many there are. Each thread sorts its
// own, and the greatest first one is taken k times. All threads of a block; `room` [2 * 16].
__device__ __forceinline__ u32 merge(const Heap& heap, u32 k, u64* room, u64* hits) {
#pragma unroll 1
    for (u32 len = heap.len; len > 1; len--) {
        u64 least = slot(heap, 0), last = slot(heap, len - 1);
        replace_least(heap, len - 1, last);
        slot(heap, len - 1) = least;
    }
    u32 warps = blockDim.x / 32, at = 0;
    u64 first = heap.len > 0 ? slot(heap, 0) : 0;
#pragma unroll 1
    for (u32 h = 0; h < k; h++) {
        // Two places alternate, so that one barrier is enough.
        u64* here = room + h % 2 * 16;
        u64 best = best_of_warp(first);
        if (lane_of() == 0) here[threadIdx.x / 32] = best;
        __syncthreads();
#pragma unroll 1
        for (u32 w = 0; w < warps; w++) best = here[w] > best ? here[w] : best;
        if (best == 0) return h;
        if (first == best) {
            at++;
            first = at < heap.len ? slot(heap, at) : 0;
        }
        if (threadIdx.x == 0) hits[h] = best;
    }
    return k;
}
