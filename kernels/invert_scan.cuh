// Scans over the threads of a block.

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
