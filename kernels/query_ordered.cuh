// The exact scores of all documents of one query, list after list, in f32, half a window at a time:
// the oracle of the other kernels, and the answer where their candidates do not fit.

#define HALF (WINDOW / 2)

struct OrderedShared {
    float sums[HALF];
    SHARED_GAP
    u8 lists[HALF];
};
SHARED_IS(OrderedShared, ORDERED_SHARED_BYTES);

struct CountShared {
    u32 bins[BINS];
};

// Radix selection of the k greatest keys: digits so far, keys above them, a bin per next digit.
struct Digits {
    u64 prefix;
    u32 above;
    u32 all;           // every document with a score is among the best k
    u32 bins[BINS];
};

__device__ __forceinline__ void ordered_half(const u8* arena, const Term* terms, const Record& record, u32 all_lists,
                                             u32 windows, const float* norms, u32 documents, u32* scores) {
    SHARED(OrderedShared, shared);
    u32 window = blockIdx.x / 2, half = blockIdx.x % 2 * HALF;
    for (u32 i = threadIdx.x; i < HALF; i += blockDim.x) {
        shared.sums[i] = 0.0f;
        shared.lists[i] = 0;
    }
    for (u32 t = 0; t < record.terms; t++) {
        // The order of additions is that of the terms.
        __syncthreads();
        const Term& term = terms[record.first_term + t];
        List list = list_of(arena, term, windows);
        u32 end = list.starts[window + 1];
        for (u32 at = list.starts[window] + threadIdx.x; at < end; at += blockDim.x) {
            u32 offset = list.docids[at];
            if (list.impacts[at] == 0 || offset < half || offset >= half + HALF) continue;
            float more = score_of(term, tf_of(list, at), norms[(window << WINDOW_BITS) + offset]);
            shared.sums[offset - half] = __fadd_rn(shared.sums[offset - half], more);
            shared.lists[offset - half] += 1;
        }
    }
    __syncthreads();
    u32 first = (window << WINDOW_BITS) + half, need = all_lists ? record.terms : 1;
    for (u32 i = threadIdx.x; i < HALF; i += blockDim.x) {
        u32 docid = first + i;
        if (docid >= documents) break;
        bool asked = docid >= record.from && docid < record.to && shared.lists[i] >= need;
        scores[docid] = asked ? __float_as_uint(shared.sums[i]) : 0;
    }
}

__device__ __forceinline__ u64 ordered_key(const u32* scores, u32 docid) { return (u64)scores[docid] << 32 | (u32)~docid; }

__device__ __forceinline__ void count_digits(const u32* scores, u32 documents, u32 shift, Digits& digits) {
    SHARED(CountShared, shared);
    u32* bins = shared.bins;
    for (u32 i = threadIdx.x; i < BINS; i += blockDim.x) bins[i] = 0;
    __syncthreads();
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < documents; i += (u64)gridDim.x * blockDim.x) {
        if (scores[i] == 0) continue;
        u64 key = ordered_key(scores, (u32)i);
        if (shift == 56 || key >> (shift + 8) == digits.prefix) atomicAdd(&bins[key >> shift & 255], 1);
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < BINS; i += blockDim.x) {
        if (bins[i] > 0) atomicAdd(&digits.bins[i], bins[i]);
    }
}

// By a warp: the next digit of the k-th key.
__device__ __forceinline__ void choose_digit(Digits& digits, u32 k) {
    u32 lane = threadIdx.x, left = k - digits.above, all = digits.all;
    u32 bin = kth_bin(digits.bins, left, lane), above = 0, total = 0;
    for (u32 i = lane; i < BINS; i += 32) {
        if (i > bin) above += digits.bins[i];
        total += digits.bins[i];
    }
    above = sum_of_warp(above);
    total = sum_of_warp(total);
    __syncwarp();
    for (u32 i = lane; i < BINS; i += 32) digits.bins[i] = 0;
    if (lane == 0) {
        // Only the first digit can have fewer than are left.
        if (total < left) digits.all = 1;
        digits.prefix = digits.prefix << 8 | bin;
        if (!all) digits.above += above;
    }
}

__device__ __forceinline__ void gather_best(const u32* scores, u32 documents, const Digits& digits, const Record& record,
                                            State& state, u64* keys) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < documents; i += (u64)gridDim.x * blockDim.x) {
        if (scores[i] == 0) continue;
        u64 key = ordered_key(scores, (u32)i);
        if (!digits.all && key < digits.prefix) continue;
        u32 at = atomicAdd(&state.count, 1);
        if (at < record.capacity) keys[record.keys + at] = key;
    }
}
