// Scans over the threads of a block, and searches in sorted arrays.

// Values that a thread of invert_scan takes at a time, and items of a thread of the other kernels.
#define SCAN_ITEMS 8
#define ITEMS 8

struct BlockScan {
    u32 warps[32];
};
SHARED_IS(BlockScan, SCAN_SHARED_BYTES);

// The sum of `value` over the block's threads before this one, and over all. All threads call it.
__device__ __forceinline__ u32 block_scan(BlockScan& shared, u32 value, u32& total) {
    return sums_of_block(shared.warps, value, total) - value;
}

// The first place before `end` whose value is not below `value`, or `end`.
__device__ __forceinline__ u32 lower_bound(const u32* __restrict__ values, u32 end, u32 value) {
    u32 low = 0, high = end;
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
