// AND: a warp takes a window of a query. The postings of the list that is shortest there are looked for in
// the others, 32 at a time, the shortest list first; what is in all is scored exactly.

// The n-th shortest list of a query.
__device__ __forceinline__ u32 shorter(const Term* terms, const Record& record, u32 n) {
    return record.first_term + terms[record.first_term + n].shorter;
}

__device__ __forceinline__ u32 bin_of(const Record& record, float score) {
    // Never falls while the score rises, which is all that is asked of it.
    float bin = __fmul_rn(score, record.per_unit);
    return bin < 255.0f ? (u32)bin : 255u;
}

__device__ __forceinline__ void and_window(const u8* arena, const Term* terms, const Record& record, u32 r, u32 window,
                                           u32 windows, const float* norms, State* states, u32* bins, u64* keys) {
    u32 lane = threadIdx.x % 32, first = window << WINDOW_BITS;
    if (record.from > first + (WINDOW - 1) || record.to <= first) return;
    // Which list is shortest here; none may be empty.
    u32 least = ALL, which = 0;
    for (u32 base = 0; base < record.terms; base += 32) {
        u32 t = base + lane, len = ALL;
        if (t < record.terms) {
            List list = list_of(arena, terms[record.first_term + t], windows);
            len = list.starts[window + 1] - list.starts[window];
        }
        u32 best = least_of_warp(len);
        if (best < least) {
            least = best;
            which = base + (u32)__ffs((int)__ballot_sync(ALL, len == best)) - 1;
        }
    }
    if (least == 0) return;
    List shortest = list_of(arena, terms[record.first_term + which], windows);
    u32 begin = shortest.starts[window], end = shortest.starts[window + 1];
    u32 threshold = __ldcg(&states[r].threshold);
    bool any = false;
    for (u32 base = begin; base < end; base += 32) {
        u32 at = base + lane, offset = 0;
        bool alive = at < end && shortest.impacts[at] > 0;
        if (alive) {
            offset = shortest.docids[at];
            alive = first + offset >= record.from && first + offset < record.to;
        }
        for (u32 n = 0; n < record.terms && __any_sync(ALL, alive); n++) {
            u32 t = shorter(terms, record, n);
            if (t == record.first_term + which) continue;
            if (alive) {
                List list = list_of(arena, terms[t], windows);
                u32 high = list.starts[window + 1];
                u32 place = find(list.docids, list.starts[window], high, offset);
                alive = place < high && list.docids[place] == offset;
            }
        }
        if (!__any_sync(ALL, alive)) continue;
        float score = alive ? exact_score(arena, terms, record, windows, norms, first + offset) : 0.0f;
        u32 bin = bin_of(record, score);
        alive = alive && score > 0.0f && bin >= threshold;
        u32 takers = __ballot_sync(ALL, alive), place = 0;
        if (takers == 0) continue;
        any = true;
        if (lane == 0) place = atomicAdd(&states[r].count, (u32)__popc(takers));
        place = __shfl_sync(ALL, place, 0) + (u32)__popc(takers & ((1u << lane) - 1));
        if (alive) {
            if (place < record.capacity) keys[record.keys + place] = key_of(first + offset, score);
            atomicAdd(&bins[r * BINS + bin], 1);
        }
    }
    if (!any) return;
    __threadfence();
    u32 bin = kth_bin(bins + r * BINS, record.k, lane);
    if (lane == 0 && bin > 0) atomicMax(&states[r].threshold, bin);
}
