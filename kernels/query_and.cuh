// AND: a block takes a window of a query. The postings of the shortest list, a portion at a time,
// are marked in a bitmap of the window, and those of the next list that are marked are left; in a
// list that is much longer, or not the second, the documents that are left are searched for.
// Documents in all lists are scored at once. Few documents are searched for by a warp each, 32
// places at a time, since the steps of a search wait for each other; many by a thread each.

#define PORTION 1024
#define AND_THREADS 128
// A list is read as a whole up to this many postings to a document that is left.
#define READ 24
// From this many documents on a thread looks for each.
#define MANY 64

struct AndShared {
    u32 marks[WINDOW / 32];
    SHARED_GAP
    u16 left[2][PORTION];
    SHARED_GAP
    Segment segments[MOST_TERMS];
    SHARED_GAP
    u32 len[2];
    u32 live;
    u32 threshold;
    u32 found;
    u32 spare;
};
SHARED_IS(AndShared, AND_SHARED_BYTES);

__device__ __forceinline__ u32 bin_of(const Record& record, float score) {
    // Never falls while the score rises, which is all that is asked of it.
    float bin = __fmul_rn(score, record.per_unit);
    return bin < 255.0f ? (u32)bin : 255u;
}

// By a warp: where the window's postings lie, the shortest list first; whether any can get in.
__device__ __forceinline__ void look_up_all(AndShared& shared, const u8* arena, const Term* terms, const Record& record,
                                            const State& state, u32 window, u32 windows) {
    u32 lane = threadIdx.x, first = window << WINDOW_BITS;
    bool none = record.from > first + (WINDOW - 1) || record.to <= first;
    float most = 0.0f;
    for (u32 base = 0; base < record.terms; base += 32) {
        u32 n = base + lane;
        bool empty = false;
        if (n < record.terms) {
            const Term& term = terms[record.first_term + terms[record.first_term + n].shorter];
            List list = list_of(arena, term, windows);
            Segment segment;
            segment.docids = list.docids;
            segment.impacts = list.impacts;
            segment.begin = list.starts[window];
            segment.end = list.starts[window + 1];
            segment.chunks = 0;
            segment.multiplier = 0;
            shared.segments[n] = segment;
            empty = segment.begin == segment.end;
            most += (float)term.multiplier * (float)list.maxes[window];
        }
        none = none || __any_sync(ALL, empty);
    }
    for (u32 step = 16; step > 0; step /= 2) most += __shfl_xor_sync(ALL, most, step);
    if (lane == 0) {
        u32 threshold = __ldcg(&state.threshold);
        if (threshold < record.floor) threshold = record.floor;
        shared.threshold = threshold;
        // A sum of OR would be this by 65536; src/gpu/query/plan.rs says what 1 of it stands for.
        float units = (record.terms <= 8 ? 255.0f : 65535.0f) - 2.0f * (float)record.terms;
        // Above the f32 score by more than what all roundings take away.
        shared.live = !none && most * (1.0001f * 255.0f / 65536.0f) >= (float)threshold * units;
    }
}

__device__ __forceinline__ void offer(AndShared& shared, const Record& record, State* states, u32* bins, u64* keys, u32 r,
                                      u32 docid, float score) {
    u32 bin = bin_of(record, score);
    if (!(score > 0.0f) || bin < shared.threshold) return;
    u32 place = atomicAdd(&states[r].count, 1);
    if (place < record.capacity) keys[record.keys + place] = key_of(docid, score);
    atomicAdd(&bins[r * BINS + bin], 1);
    atomicExch(&shared.found, 1);
}

__device__ __forceinline__ void keep(AndShared& shared, u32 which, u32 offset) {
    shared.left[which][atomicAdd(&shared.len[which], 1)] = (u16)offset;
}

// What is left and in this list too goes to the other half of `left`.
__device__ __forceinline__ void look_for(AndShared& shared, const Segment& segment, u32 from, u32 len) {
    u32 tid = threadIdx.x, to = 1 - from;
    if (len >= MANY) {
        for (u32 i = tid; i < len; i += AND_THREADS) {
            u32 offset = shared.left[from][i], at = find<false>(segment.docids, segment.begin, segment.end, offset);
            if (at < segment.end && segment.docids[at] == offset) keep(shared, to, offset);
        }
    } else {
        for (u32 i = tid / 32; i < len; i += AND_THREADS / 32) {
            u32 offset = shared.left[from][i], at = find<true>(segment.docids, segment.begin, segment.end, offset);
            if (tid % 32 == 0 && at < segment.end && segment.docids[at] == offset) keep(shared, to, offset);
        }
    }
    __syncthreads();
}

// The same, reading the whole list.
__device__ __forceinline__ void read_through(AndShared& shared, const Segment& segment, u32 from, u32 len) {
    u32 tid = threadIdx.x, to = 1 - from;
    for (u32 i = tid; i < len; i += AND_THREADS) {
        u32 offset = shared.left[from][i];
        atomicOr(&shared.marks[offset / 32], 1u << (offset % 32));
    }
    __syncthreads();
    for (u32 at = segment.begin + 4 * tid; at < segment.end; at += 4 * AND_THREADS) {
        uint2 docids = *(const uint2*)(segment.docids + at);
        u32 offsets[4] = {docids.x & 0xffff, docids.x >> 16, docids.y & 0xffff, docids.y >> 16};
        for (u32 i = 0; i < 4; i++) {
            u32 mark = 1u << (offsets[i] % 32);
            if (!(shared.marks[offsets[i] / 32] & mark)) continue;
            // Padding repeats a docid: only the first that comes has it.
            if (atomicAnd(&shared.marks[offsets[i] / 32], ~mark) & mark) keep(shared, to, offsets[i]);
        }
    }
    __syncthreads();
    for (u32 i = tid; i < len; i += AND_THREADS) shared.marks[shared.left[from][i] / 32] = 0;
    __syncthreads();
}

__device__ __forceinline__ void and_windows(const u8* arena, const Term* terms, const Record* records, u32 first,
                                            u32 records_len, u32 windows, const float* norms, State* states, u32* bins,
                                            u64* keys) {
    SHARED(AndShared, shared);
    u32 tid = threadIdx.x;
    for (u32 i = tid; i < WINDOW / 32; i += AND_THREADS) shared.marks[i] = 0;
    if (tid == 0) shared.found = 0;
    u64 items = (u64)records_len * windows;
    for (u64 item = blockIdx.x; item < items; item += gridDim.x) {
        u32 r = first + (u32)(item % records_len), window = (u32)(item / records_len);
        const Record& record = records[r];
        if (tid < 32) look_up_all(shared, arena, terms, record, states[r], window, windows);
        __syncthreads();
        u32 live = shared.live, start = window << WINDOW_BITS;
        Segment shortest = shared.segments[0];
        for (u32 base = shortest.begin; live && base < shortest.end; base += PORTION) {
            u32 end = shortest.end - base < PORTION ? shortest.end : base + PORTION, which = 0;
            if (tid == 0) shared.len[0] = 0;
            __syncthreads();
            for (u32 at = base + tid; at < end; at += AND_THREADS) {
                u32 offset = shortest.docids[at];
                bool asked = start + offset >= record.from && start + offset < record.to;
                if (shortest.impacts[at] > 0 && asked) keep(shared, 0, offset);
            }
            __syncthreads();
            u32 len = shared.len[0];
            for (u32 n = 1; n < record.terms && len > 0; n++) {
                const Segment& segment = shared.segments[n];
                if (tid == 0) shared.len[1 - which] = 0;
                __syncthreads();
                bool reads = n == 1 && segment.end - segment.begin <= READ * len;
                if (reads) read_through(shared, segment, which, len);
                else look_for(shared, segment, which, len);
                which = 1 - which;
                len = shared.len[which];
            }
            if (len >= MANY) {
                for (u32 i = tid; i < len; i += AND_THREADS) {
                    u32 docid = start + shared.left[which][i];
                    float score = exact_score<false>(arena, terms, record, windows, norms, docid);
                    offer(shared, record, states, bins, keys, r, docid, score);
                }
            } else {
                for (u32 i = tid / 32; i < len; i += AND_THREADS / 32) {
                    u32 docid = start + shared.left[which][i];
                    float score = exact_score<true>(arena, terms, record, windows, norms, docid);
                    if (tid % 32 == 0) offer(shared, record, states, bins, keys, r, docid, score);
                }
            }
            __syncthreads();
        }
        __syncthreads();
        if (tid < 32 && shared.found) {
            __threadfence();
            u32 bin = kth_bin(bins + r * BINS, record.k, tid);
            if (tid == 0 && bin > 0) atomicMax(&states[r].threshold, bin);
            __syncwarp();
            if (tid == 0) shared.found = 0;
        }
        // `found` is not set before the next barriers of the loop.
    }
}
