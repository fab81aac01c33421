// Ranked queries: the best documents of many queries at once, with the CPU's scores to the bit,
// whatever the order in which anything here runs.
//
// A document's score is the f32 sum, in the order of the query's terms, of what each list gives.
// The sum of *upper bounds* of these, as integers, can be added up in any order. With T the k-th
// greatest of these sums, k documents have scores that T less a slack stands for, so every document
// whose sum is smaller than that is out. What is left, the candidates, is scored exactly and sorted
// by score and docid.
//
//   query_put        brings what the host has made of lists                      query_unpack.cuh
//   query_unpack     decodes the rest of them
//   query_begin      brings a batch from the host and makes zero what has to be
//   query_sample     some windows of each query, for a first threshold           query_or.cuh
//   query_or         all windows: candidates, and a rising threshold             query_groups.cuh
//   query_wide_*     the same with sums of 16 bits, for queries of many terms
//   query_and        documents with all terms, scored at once                    query_and.cuh
//   query_rescore    exact scores of candidates
//   query_select     the best k of each query, sorted                            query_select.cuh
//   query_impact_*   the same for sums of learned weights, which are exact       query_impacts.cuh
//
// Arrays, sizes in brackets: arena [bytes], terms and records of the batch, states [records] and
// bins [records * 256], zero in the beginning, keys [candidates of all records], answers [records]
// and hits [hits of all records], which like input may lie in the memory of the host; norms
// [documents]; work [1], zero: items that were taken; bounds [records * windows of documents].
// Exact results do not depend on the geometry.

// `input`: four words, the first two of which are the lengths of records and terms in units of 16
// bytes, then these. `zeroed` units of `zero` become 0.
extern "C" __global__ void query_begin(const uint4* __restrict__ input, uint4* records, uint4* terms, uint4* zero,
                                       u32 zeroed) {
    uint4 head = input[0];
    u32 first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    for (u32 i = first; i < head.x; i += step) records[i] = input[1 + i];
    for (u32 i = first; i < head.y; i += step) terms[i] = input[1 + head.x + i];
    for (u32 i = first; i < zeroed; i += step) zero[i] = make_uint4(0, 0, 0, 0);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
query_sample(const u8* __restrict__ arena, const Term* __restrict__ terms, const Record* __restrict__ records, u32 first,
             u32 records_len, u32 windows, u32 step, State* states, u32* bins, u64* keys, u32* work) {
    or_windows<8, THREADS, false>(arena, terms, records, first, records_len, windows, step, states, bins, keys, work);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
query_or(const u8* __restrict__ arena, const Term* __restrict__ terms, const Record* __restrict__ records, u32 first,
         u32 records_len, u32 windows, State* states, u32* bins, u64* keys, u32* work) {
    or_windows<8, THREADS, true>(arena, terms, records, first, records_len, windows, 1, states, bins, keys, work);
}

extern "C" __global__ void __launch_bounds__(WIDE_THREADS)
query_wide_sample(const u8* __restrict__ arena, const Term* __restrict__ terms, const Record* __restrict__ records,
                  u32 first, u32 records_len, u32 windows, u32 step, State* states, u32* bins, u64* keys, u32* work) {
    or_windows<16, WIDE_THREADS, false>(arena, terms, records, first, records_len, windows, step, states, bins, keys, work);
}

extern "C" __global__ void __launch_bounds__(WIDE_THREADS)
query_wide_or(const u8* __restrict__ arena, const Term* __restrict__ terms, const Record* __restrict__ records, u32 first,
              u32 records_len, u32 windows, State* states, u32* bins, u64* keys, u32* work) {
    or_windows<16, WIDE_THREADS, false>(arena, terms, records, first, records_len, windows, 1, states, bins, keys, work);
}

extern "C" __global__ void __launch_bounds__(AND_THREADS)
query_and(const u8* __restrict__ arena, const Term* __restrict__ terms, const Record* __restrict__ records, u32 first,
          u32 records_len, u32 windows, const float* __restrict__ norms, State* states, u32* bins, u64* keys) {
    and_windows(arena, terms, records, first, records_len, windows, norms, states, bins, keys);
}

// `each` blocks for each query: candidates whose sums, of `bits` bits, fall below the last
// threshold become 0, all others their keys.
extern "C" __global__ void __launch_bounds__(RESCORE_THREADS)
query_rescore(const u8* __restrict__ arena, const Term* __restrict__ terms, const Record* __restrict__ records, u32 first,
              u32 each, u32 windows, u32 bits, const float* __restrict__ norms, const State* __restrict__ states,
              const u32* __restrict__ bins, u64* keys) {
    SHARED(RescoreShared, shared);
    u32 r = first + blockIdx.x / each;
    const Record& record = records[r];
    if (is_answered(record, states)) return;
    rescore(shared, arena, terms, record, windows, bits, norms, states[r], bins + r * BINS, keys + record.keys,
            blockIdx.x % each, each);
}

extern "C" __global__ void __launch_bounds__(SELECT_THREADS)
query_select(const Record* __restrict__ records, u32 first, State* states, const u64* __restrict__ keys, u64* sorted,
             State* answers, u64* hits) {
    u32 r = first + blockIdx.x;
    const Record& record = records[r];
    SHARED(SelectShared, shared);
    State state = states[r];
    if (is_answered(record, states)) state.hits = 0;
    else state.hits = select_best(shared, record, state, keys + record.keys, sorted + record.sorted, hits + record.hits);
    if (threadIdx.x == 0) answers[r] = state;
}

extern "C" __global__ void __launch_bounds__(IMPACT_THREADS, 2)
query_impact_sample(const u8* __restrict__ arena, const Term* __restrict__ terms, const Record* __restrict__ records,
                    u32 windows, u32 documents, u32 len, u32 records_len, u32 listed, const uint2* __restrict__ list,
                    u32* bins, u32* work) {
    Items items = {len, records_len, 0, listed ? list : nullptr};
    impact_windows<COUNTED>(arena, terms, records, windows, documents, items, nullptr, bins, nullptr, nullptr, work);
}

// A warp for each query, whose `bar` is a rank. Lists its live windows, of as many as have bounds.
extern "C" __global__ void query_impact_bar(const Record* __restrict__ records, u32 records_len, State* states,
                                            const u32* __restrict__ bins, u32 windows, const u32* __restrict__ bounds,
                                            uint2* list, u32* len) {
    u32 r = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (r >= records_len) return;
    u32 threshold = threshold_of(bins + r * SUM_BINS, records[r].bar);
    if (lane_of() == 0) states[r].threshold = threshold;
    live_windows(bounds + r * windows, windows, r, threshold, list, len);
}

// Of all windows, or of a list, whose length is behind `work`.
extern "C" __global__ void __launch_bounds__(IMPACT_THREADS, BLOCKS_PER_SM)
query_impact_or(const u8* __restrict__ arena, const Term* __restrict__ terms, const Record* __restrict__ records,
                u32 windows, u32 documents, u32 len, u32 records_len, u32 listed, const uint2* __restrict__ list,
                State* states, u64* keys, u32* work) {
    Items items = {listed ? work[1] : len, records_len, 0, listed ? list : nullptr};
    impact_windows<COMPARED>(arena, terms, records, windows, documents, items, states, nullptr, keys, nullptr, work);
}

// Of the windows of blocks, from `first` on.
extern "C" __global__ void __launch_bounds__(IMPACT_THREADS, BLOCKS_PER_SM)
query_impact_bounds(const u8* __restrict__ arena, const Term* __restrict__ terms, const Record* __restrict__ records,
                    u32 windows, u32 documents, u32 len, u32 records_len, u32 first, u32* bounds, u32* work) {
    Items items = {len, records_len, first, nullptr};
    impact_windows<BOUNDS>(arena, terms, records, windows, documents, items, nullptr, nullptr, nullptr, bounds, work);
}

// A warp for each query: lists the window with the greatest bound.
extern "C" __global__ void query_impact_best(u32 records_len, u32 windows, const u32* __restrict__ bounds,
                                             uint2* list) {
    u32 r = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (r >= records_len) return;
    u32 best = best_window(bounds + r * windows, windows);
    if (lane_of() == 0) list[r] = make_uint2(r, best);
}

// `each` blocks for each query: if it is asked for, the sums of candidates become scores.
extern "C" __global__ void __launch_bounds__(RESCORE_THREADS)
query_impact_rank(const u8* __restrict__ arena, const Term* __restrict__ terms, const Record* __restrict__ records,
                  u32 each, u32 windows, u32 documents, const State* __restrict__ states, u64* keys) {
    u32 r = blockIdx.x / each, count = states[r].count;
    const Record& record = records[r];
    if (record.slack == 0 || count > record.capacity) return;
    u32 sampled = (documents + SPREAD - 1) / SPREAD, warps = RESCORE_THREADS / 32;
    for (u32 i = blockIdx.x % each * warps + threadIdx.x / 32; i < count; i += each * warps) {
        u32 docid = ~(u32)keys[record.keys + i], number = number_of(docid, sampled);
        float score = weighted_score(arena, terms + record.first_term, record.terms, windows, number);
        // All lanes have read the key.
        __syncwarp();
        if (lane_of() == 0) keys[record.keys + i] = key_of(docid, score);
    }
}
