// Scores the candidates that may be among the best k, and sorts them. Blocks take some candidates
// at a time and first gather those whose sums are enough, so that all threads have some to score.

#define RESCORE_THREADS 128
// Candidates that a block looks at together, at most and at least.
#define GATHERED 1024
#define LEAST_GATHERED 32
// Up to this many are scored by a warp each, which is faster.
#define SCORED_BY_WARPS 12

struct RescoreShared {
    u16 left[GATHERED];
    SHARED_GAP
    u32 len;
    u32 bar;
};
SHARED_IS(RescoreShared, RESCORE_SHARED_BYTES);

__device__ __forceinline__ void rescore(RescoreShared& shared, const u8* arena, const Term* terms, const Record& record,
                                        u32 windows, u32 bits, const float* norms, const State& state, const u32* bins,
                                        u64* keys, u32 block, u32 blocks) {
    u32 tid = threadIdx.x, count = state.count;
    if (count > record.capacity) return;
    if (tid < 32) {
        u32 threshold = kth_bin(bins, record.k, tid) << (bits - 8);
        if (threshold < state.threshold) threshold = state.threshold;
        if (tid == 0) shared.bar = threshold > record.slack ? threshold - record.slack : 1;
    }
    // All blocks get some, so that a query that is alone is soon done.
    u32 portion = (count + blocks - 1) / blocks;
    portion = portion < LEAST_GATHERED ? LEAST_GATHERED : portion > GATHERED ? GATHERED : portion;
    for (u32 base = block * portion; base < count; base += blocks * portion) {
        if (tid == 0) shared.len = 0;
        __syncthreads();
        u32 end = count - base < portion ? count - base : portion;
        for (u32 i = tid; i < end; i += RESCORE_THREADS) {
            if ((u32)(keys[base + i] >> 32) >= shared.bar) shared.left[atomicAdd(&shared.len, 1)] = (u16)i;
            else keys[base + i] = 0;
        }
        __syncthreads();
        u32 len = shared.len;
        bool by_warps = len <= SCORED_BY_WARPS;
        for (u32 i = by_warps ? tid / 32 : tid; i < len; i += by_warps ? RESCORE_THREADS / 32 : RESCORE_THREADS) {
            u32 at = base + shared.left[i], docid = (u32)keys[at];
            float score = by_warps ? exact_score<true>(arena, terms, record, windows, norms, docid)
                                   : exact_score<false>(arena, terms, record, windows, norms, docid);
            // All lanes of a warp have read the key.
            if (by_warps) __syncwarp();
            if (!by_warps || tid % 32 == 0) keys[at] = score > 0.0f ? key_of(docid, score) : 0;
        }
        __syncthreads();
    }
}

// By a block for each query: if more than SORTED candidates are left, digits of their keys are
// counted from the highest on until few enough have the same or greater ones; these are sorted, in
// shared memory if they fit.

struct SelectShared {
    u64 keys[SORTED];
    SHARED_GAP
    u32 digits[BINS];
    SHARED_GAP
    u32 len;
    u32 digit;
    u32 above;
    u32 at_digit;
};
SHARED_IS(SelectShared, SELECT_SHARED_BYTES);

// Sorts `len` keys, a power of two, the greatest first.
__device__ __forceinline__ void sort_keys(u64* keys, u32 len) {
    for (u32 run = 2; run <= len; run *= 2) {
        for (u32 step = run / 2; step > 0; step /= 2) {
            __syncthreads();
            for (u32 i = threadIdx.x; i < len / 2; i += SELECT_THREADS) {
                u32 low = 2 * i - (i & (step - 1)), high = low + step;
                bool falls = (low & run) == 0;
                u64 a = keys[low], b = keys[high];
                if ((a < b) == falls) {
                    keys[low] = b;
                    keys[high] = a;
                }
            }
        }
    }
    __syncthreads();
}

__device__ __forceinline__ u32 select_best(SelectShared& shared, const Record& record, const State& state,
                                           const u64* keys, u64* sorted, u64* hits) {
    u32 tid = threadIdx.x, candidates = state.count;
    if (candidates > record.capacity) return OVERFLOWN;
    if (tid == 0) shared.len = 0;
    __syncthreads();
    u32 own = 0;
    for (u32 i = tid; i < candidates; i += SELECT_THREADS) own += keys[i] != 0;
    if (own > 0) atomicAdd(&shared.len, own);
    __syncthreads();
    u32 left = shared.len, limit = record.k > SORTED ? record.k : SORTED, above = 0, shift = 64;
    u64 prefix = 0;
    while (left > limit) {
        shift -= 8;
        for (u32 i = tid; i < BINS; i += SELECT_THREADS) shared.digits[i] = 0;
        __syncthreads();
        for (u32 i = tid; i < candidates; i += SELECT_THREADS) {
            u64 key = keys[i];
            bool same = shift == 56 ? key != 0 : key >> (shift + 8) == prefix;
            if (same) atomicAdd(&shared.digits[key >> shift & 255], 1);
        }
        __syncthreads();
        if (tid == 0) {
            u32 digit = BINS - 1, sum = above;
            while (sum + shared.digits[digit] < record.k) sum += shared.digits[digit--];
            shared.digit = digit;
            shared.above = sum;
            shared.at_digit = shared.digits[digit];
        }
        __syncthreads();
        prefix = prefix << 8 | shared.digit;
        above = shared.above;
        left = above + shared.at_digit;
    }
    u64 least = shift == 64 ? 1 : prefix << shift;
    if (least == 0) least = 1;
    u64* room = left <= SORTED ? shared.keys : sorted;
    u32 len = 1;
    while (len < left) len *= 2;
    __syncthreads();
    if (tid == 0) shared.len = 0;
    __syncthreads();
    for (u32 i = tid; i < candidates; i += SELECT_THREADS) {
        u64 key = keys[i];
        if (key >= least) room[atomicAdd(&shared.len, 1)] = key;
    }
    for (u32 i = left + tid; i < len; i += SELECT_THREADS) room[i] = 0;
    sort_keys(room, len);
    u32 best = left < record.k ? left : record.k;
    for (u32 i = tid; i < best; i += SELECT_THREADS) hits[i] = room[i];
    return best;
}
