// A stable sort of pairs by some bits of their keys: tiles count their digits, invert_scan makes
// places of the counts, and tiles put their pairs there.

#define SORT_BITS 9
#define SORT_DIGITS (1 << SORT_BITS)
// Items of a thread of the sort, and of a block.
#define SORT_ITEMS 16
#define SORT_TILE 4096

struct SortCount {
    u32 bins[SORT_DIGITS];
};
SHARED_IS(SortCount, SORT_COUNT_SHARED_BYTES);

struct SortScatter {
    BlockScan scan;
    SHARED_GAP
    // By warp and digit: items so far, then the place of the first in the tile.
    u16 bins[8][SORT_DIGITS];
    SHARED_GAP
    // By digit: how far its items go from there.
    u32 moves[SORT_DIGITS];
    SHARED_GAP
    u32 keys[SORT_TILE];
    SHARED_GAP
    u32 values[SORT_TILE];
};
SHARED_IS(SortScatter, SORT_SCATTER_SHARED_BYTES);

__device__ __forceinline__ u32 digit_of(u32 key, u32 shift, u32 bits) { return key >> shift & ((1u << bits) - 1); }

// counts [2^bits * tiles]: how many keys of each tile of 4096 have each digit, by digit, then tile.
extern "C" __global__ void invert_sort_count(const u32* __restrict__ keys, u32 n, u32 shift, u32 bits, u32* counts) {
    SHARED(SortCount, shared);
    for (u32 digit = threadIdx.x; digit < 1u << bits; digit += blockDim.x) shared.bins[digit] = 0;
    __syncthreads();
    for (u32 i = 0; i < SORT_ITEMS; i++) {
        u32 at = blockIdx.x * SORT_TILE + i * blockDim.x + threadIdx.x;
        if (at < n) atomicAdd(&shared.bins[digit_of(keys[at], shift, bits)], 1u);
    }
    __syncthreads();
    for (u32 digit = threadIdx.x; digit < 1u << bits; digit += blockDim.x) {
        counts[digit * gridDim.x + blockIdx.x] = shared.bins[digit];
    }
}

// counts [2^bits * tiles]: where the keys of each digit of each tile go; equal digits stay in their
// order. A tile is sorted in shared memory before, so that neighbours are written together.
extern "C" __global__ void invert_sort_scatter(
    const u32* __restrict__ keys, const u32* __restrict__ values, u32 n, u32 shift, u32 bits, const u32* __restrict__ counts,
    u32* keys_to, u32* values_to) {
    SHARED(SortScatter, shared);
    u32 lane = lane_of(), warp = threadIdx.x / 32, digits = 1u << bits;
    for (u32 w = 0; w < 8; w++) {
        for (u32 digit = threadIdx.x; digit < digits; digit += blockDim.x) shared.bins[w][digit] = 0;
    }
    __syncthreads();
    // A warp has 512 neighbouring keys, 32 at a time.
    u32 tile = blockIdx.x * SORT_TILE, first = tile + warp * (SORT_TILE / 8) + lane;
    u32 here[SORT_ITEMS], places[SORT_ITEMS];
    for (u32 i = 0; i < SORT_ITEMS; i++) {
        u32 at = first + 32 * i;
        here[i] = at < n ? keys[at] : 0;
        u32 digit = at < n ? digit_of(here[i], shift, bits) : digits;
        u32 same = __match_any_sync(ALL, digit);
        u32 leader = (u32)__ffs((int)same) - 1, before = 0;
        if (lane == leader && digit < digits) {
            before = shared.bins[warp][digit];
            shared.bins[warp][digit] = (u16)(before + __popc(same));
        }
        places[i] = __shfl_sync(ALL, before, leader) + __popc(same & ((1u << lane) - 1));
        __syncwarp();
    }
    __syncthreads();
    // Where items of each digit and warp begin in the tile; a thread has two neighbouring digits.
    u32 sums[2] = {0, 0}, all;
    for (u32 i = 0; i < 2; i++) {
        u32 digit = 2 * threadIdx.x + i;
        for (u32 w = 0; w < 8 && digit < digits; w++) sums[i] += shared.bins[w][digit];
    }
    u32 next = block_scan(shared.scan, sums[0] + sums[1], all);
    for (u32 i = 0; i < 2; i++) {
        u32 digit = 2 * threadIdx.x + i;
        if (digit >= digits) break;
        shared.moves[digit] = counts[digit * gridDim.x + blockIdx.x] - next;
        for (u32 w = 0; w < 8; w++) {
            u32 count = shared.bins[w][digit];
            shared.bins[w][digit] = (u16)next;
            next += count;
        }
    }
    __syncthreads();
    for (u32 i = 0; i < SORT_ITEMS; i++) {
        u32 at = first + 32 * i;
        if (at >= n) continue;
        u32 place = shared.bins[warp][digit_of(here[i], shift, bits)] + places[i];
        shared.keys[place] = here[i];
        shared.values[place] = values[at];
    }
    __syncthreads();
    u32 items = min(n - tile, (u32)SORT_TILE);
    for (u32 at = threadIdx.x; at < items; at += blockDim.x) {
        u32 key = shared.keys[at], to = at + shared.moves[digit_of(key, shift, bits)];
        keys_to[to] = key;
        values_to[to] = shared.values[at];
    }
}
