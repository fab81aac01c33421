// OR: the sums of upper bounds of all documents of a window, 8 or 16 bits each, in shared memory.
//
// An item of work is a window of a query; a block takes one after the other, all queries of a
// window before the next window, so that thresholds rise and lists stay in the second-level cache.
// 1. A warp finds the postings of the window in each list and cuts them into chunks of 128.
// 2. Warps take chunks; a lane adds four postings, by integer atomics. The sums of a query fit
//    their bits whatever its lists hold, so nothing carries into the neighbour.
// 3. All sums (of few postings, only their own) are compared and zeroed. Documents that reach the
//    threshold less the slack become candidates, counted by their sums in 256 bins.
// 4. Bins are added to the query's; the threshold is the greatest bin with k documents from it up.
// Where windows are many, an item is a group of them: query_groups.cuh.

// With fewer postings in a window only their own sums are looked at.
#define FEW(BITS) (WINDOW * (BITS) / 128)

struct Segment {
    const u16* docids;
    const u8* impacts;
    u32 begin;
    u32 end;
    u32 chunks;        // of this list and those before it
    u32 multiplier;
};

template <u32 BITS>
struct OrShared {
    u32 sums[WINDOW / 32 * BITS];
    SHARED_GAP
    u32 found[FOUND];
    SHARED_GAP
    u32 bins[BINS];
    SHARED_GAP
    Segment segments[MOST_TERMS];
    SHARED_GAP
    u32 next;
    u32 live;
    u32 postings;
    u32 found_len;
    u32 base;
    u32 bar;
};
SHARED_IS(OrShared<8>, OR_SHARED_BYTES);
SHARED_IS(OrShared<16>, WIDE_SHARED_BYTES);

template <u32 BITS>
struct Packed {
    static const u32 EACH = BITS == 8 ? 0x01010101u : 0x00010001u;
    static const u32 MASK = (1u << BITS) - 1;
    static const u32 TOP = EACH << (BITS - 1);

    __device__ static __forceinline__ u32* word(u32* sums, u32 offset) {
        return BITS == 8 ? (u32*)((u8*)sums + (offset & ~3u)) : sums + (offset >> 1);
    }
    __device__ static __forceinline__ u32 shift(u32 offset) { return BITS == 8 ? (offset & 3) * 8 : (offset & 1) * 16; }
    __device__ static __forceinline__ void add(u32* sums, u32 offset, u32 more) {
        // The shift is taken modulo 32, which leaves the place in the word.
        atomicAdd(word(sums, offset), __funnelshift_l(0u, more, BITS == 8 ? offset << 3 : offset << 4));
    }
    // The top bit of each sum that is at least `bar`, of which `lift` and `any` are made.
    __device__ static __forceinline__ u32 at_least(u32 x, u32 lift, u32 any) {
        u32 y = (x & ~TOP) + lift;
        return (x & y) | (any & (x | y));
    }
    __device__ static __forceinline__ u32 lift(u32 bar) {
        u32 half = 1u << (BITS - 1);
        return (bar <= half ? half - bar : 2 * half - bar) * EACH;
    }
    __device__ static __forceinline__ u32 any(u32 bar) { return bar <= 1u << (BITS - 1) ? ALL : 0; }
};

__device__ __forceinline__ u32 worth(u32 impact, u32 multiplier) { return (impact * multiplier + 65535) >> 16; }

// Step 1, by a warp.
template <u32 BITS>
__device__ __forceinline__ void look_up(OrShared<BITS>& shared, const u8* arena, const Term* terms, const Record& record,
                                        const State* states, u32 r, u32 window, u32 windows, bool is_sample) {
    u32 lane = threadIdx.x, before = 0, most = 0, postings = 0;
    for (u32 base = 0; base < record.terms; base += 32) {
        u32 t = base + lane, chunks = 0, here = 0, len = 0;
        Segment segment;
        if (t < record.terms) {
            const Term& term = terms[record.first_term + t];
            List list = list_of(arena, term, windows);
            segment.begin = list.starts[window];
            segment.end = list.starts[window + 1];
            segment.docids = list.docids;
            segment.impacts = list.impacts;
            segment.multiplier = term.multiplier;
            len = segment.end - segment.begin;
            chunks = (len + 127) / 128;
            here = worth(list.maxes[window], term.multiplier);
        }
        u32 upto = sums_of_warp(chunks);
        if (t < record.terms) {
            segment.chunks = before + upto;
            shared.segments[t] = segment;
        }
        before += __shfl_sync(ALL, upto, 31);
        most += sum_of_warp(here);
        postings += sum_of_warp(len);
    }
    if (lane == 0) {
        u32 threshold = __ldcg(&states[r].threshold);
        u32 bar = threshold > record.slack ? threshold - record.slack : 1;
        if (is_sample && bar < record.bar) bar = record.bar;
        u32 first = window << WINDOW_BITS;
        bool asked = record.from <= first + (WINDOW - 1) && record.to > first;
        shared.postings = postings;
        shared.live = postings > 0 && most >= bar && asked && !is_answered(record, states);
    }
}

struct Four {
    uint2 docids;
    u32 impacts;
    u32 multiplier;
};

// The list of a chunk and the four postings of a lane in it; false if it has none. `t` only rises.
template <u32 BITS>
__device__ __forceinline__ bool locate(const OrShared<BITS>& shared, u32 chunk, u32& t, u32& at) {
    while (chunk >= shared.segments[t].chunks) t++;
    u32 before = t == 0 ? 0 : shared.segments[t - 1].chunks;
    at = shared.segments[t].begin + (chunk - before) * 128 + (threadIdx.x % 32) * 4;
    return at < shared.segments[t].end;
}

template <u32 BITS>
__device__ __forceinline__ bool load(const OrShared<BITS>& shared, u32 chunk, u32& t, Four& four) {
    u32 at;
    if (!locate(shared, chunk, t, at)) return false;
    const Segment& segment = shared.segments[t];
    four.docids = *(const uint2*)(segment.docids + at);
    four.impacts = *(const u32*)(segment.impacts + at);
    four.multiplier = segment.multiplier;
    return true;
}

// Step 2.
template <u32 BITS>
__device__ __forceinline__ void add_up(OrShared<BITS>& shared, u32 chunks, u32 warps) {
    u32 chunk = threadIdx.x / 32, t = 0;
    Four four, next;
    bool has = chunk < chunks && load(shared, chunk, t, four);
    while (chunk < chunks) {
        u32 following = chunk + warps;
        bool has_next = following < chunks && load(shared, following, t, next);
        if (has) {
            u32 m = four.multiplier;
            Packed<BITS>::add(shared.sums, four.docids.x & 0xffff, worth(four.impacts & 255, m));
            Packed<BITS>::add(shared.sums, four.docids.x >> 16, worth(four.impacts >> 8 & 255, m));
            Packed<BITS>::add(shared.sums, four.docids.y & 0xffff, worth(four.impacts >> 16 & 255, m));
            Packed<BITS>::add(shared.sums, four.docids.y >> 16, worth(four.impacts >> 24, m));
        }
        four = next;
        has = has_next;
        chunk = following;
    }
}

// A document that may be among the best, by its place from the first of `window` on. In a sample it
// is only counted.
template <u32 BITS>
__device__ __forceinline__ void take(OrShared<BITS>& shared, const Record& record, State* states, u64* keys, u32 r,
                                     u32 window, u32 offset, u32 sum, bool is_sample) {
    u32 docid = (window << WINDOW_BITS) + offset;
    if (docid < record.from || docid >= record.to) return;
    u32 place = atomicAdd(&shared.found_len, 1);
    if (!is_sample) {
        if (place < FOUND) {
            shared.found[place] = sum << (32 - BITS) | offset;
        } else {
            u32 at = atomicAdd(&states[r].count, 1);
            if (at < record.capacity) keys[record.keys + at] = (u64)sum << 32 | docid;
        }
    }
    atomicAdd(&shared.bins[sum >> (BITS - 8)], 1);
}

// Step 4. What was found in an item becomes candidates.
template <u32 BITS, u32 BLOCK>
__device__ __forceinline__ void give(OrShared<BITS>& shared, const Record& record, State* states, u32* bins, u64* keys,
                                     u32 r, u32 window, bool is_sample) {
    u32 tid = threadIdx.x;
    __syncthreads();
    u32 found = shared.found_len;
    if (found == 0) return;
    u32 kept = found < FOUND ? found : FOUND;
    if (tid == 0 && !is_sample) shared.base = atomicAdd(&states[r].count, kept);
    __syncthreads();
    for (u32 i = tid; i < kept && !is_sample; i += BLOCK) {
        u32 at = shared.base + i, entry = shared.found[i];
        u32 docid = (window << WINDOW_BITS) + (entry & (ALL >> BITS));
        if (at < record.capacity) keys[record.keys + at] = (u64)(entry >> (32 - BITS)) << 32 | docid;
    }
    for (u32 i = tid; i < BINS; i += BLOCK) {
        if (shared.bins[i] > 0) atomicAdd(&bins[r * BINS + i], shared.bins[i]);
        shared.bins[i] = 0;
    }
    if (tid == 0) shared.found_len = 0;
    __syncthreads();
    // The second warp: the first looks up the next window meanwhile.
    if (tid / 32 == 1) {
        u32 bin = kth_bin(bins + r * BINS, record.k, tid % 32);
        if (tid == 32 && bin > 0) atomicMax(&states[r].threshold, bin << (BITS - 8));
    }
}

// A window of a query, by a block.
template <u32 BITS, u32 BLOCK>
__device__ __forceinline__ void one_window(OrShared<BITS>& shared, const u8* arena, const Term* terms,
                                           const Record& record, State* states, u32* bins, u64* keys, u32 r,
                                           u32 window, u32 windows, bool is_sample) {
    const u32 QUADS = WINDOW / 128 * BITS;
    uint4* quads = (uint4*)shared.sums;
    u32 tid = threadIdx.x;
    if (tid < 32) look_up(shared, arena, terms, record, states, r, window, windows, is_sample);
    __syncthreads();
    if (!shared.live) return;
    u32 chunks = shared.segments[record.terms - 1].chunks;
    if (tid == 0) {
        u32 threshold = __ldcg(&states[r].threshold);
        u32 bar = threshold > record.slack ? threshold - record.slack : 1;
        u32 least = is_sample && record.floor < record.bar ? record.bar : record.floor;
        shared.bar = bar < least ? least : bar;
    }
    add_up(shared, chunks, BLOCK / 32);
    __syncthreads();
    u32 bar = shared.bar;
    if (shared.postings < FEW(BITS)) {
        for (u32 chunk = tid / 32, t = 0; chunk < chunks; chunk += BLOCK / 32) {
            u32 at;
            if (!locate(shared, chunk, t, at)) continue;
            uint2 docids = *(const uint2*)(shared.segments[t].docids + at);
            u32 offsets[4] = {docids.x & 0xffff, docids.x >> 16, docids.y & 0xffff, docids.y >> 16};
            for (u32 i = 0; i < 4; i++) {
                u32 shift = Packed<BITS>::shift(offsets[i]), mask = Packed<BITS>::MASK << shift;
                // The thread that makes the sum zero has the document.
                u32 sum = (atomicAnd(Packed<BITS>::word(shared.sums, offsets[i]), ~mask) & mask) >> shift;
                if (sum >= bar) take(shared, record, states, keys, r, window, offsets[i], sum, is_sample);
            }
        }
    } else {
        u32 lift = Packed<BITS>::lift(bar), any = Packed<BITS>::any(bar);
        for (u32 i = tid; i < QUADS; i += BLOCK) {
            uint4 quad = quads[i];
            quads[i] = make_uint4(0, 0, 0, 0);
            u32 words[4] = {quad.x, quad.y, quad.z, quad.w}, enough = 0;
            for (u32 w = 0; w < 4; w++) enough |= Packed<BITS>::at_least(words[w], lift, any);
            if (!(enough & Packed<BITS>::TOP)) continue;
            // Going through the top bits instead made the sweep slower.
            for (u32 w = 0; w < 4; w++) {
                for (u32 p = 0; p < 32 / BITS; p++) {
                    u32 sum = words[w] >> (p * BITS) & Packed<BITS>::MASK;
                    u32 offset = (4 * i + w) * (32 / BITS) + p;
                    if (sum >= bar) take(shared, record, states, keys, r, window, offset, sum, is_sample);
                }
            }
        }
    }
    give<BITS, BLOCK>(shared, record, states, bins, keys, r, window, is_sample);
}
