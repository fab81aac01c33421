// Queries as in Ding, He, Yan and Suel, "Using Graphics Processors for High Performance IR Query
// Processing" (WWW 2009): lists of `rice` and `pfor` as on disk, AND by Parallel Merge Find from
// the shortest list on, OR with an accumulator for each document, list after list.
// src/gpu/ding09/steps.rs has the order of launches.
//
// Arrays, sizes in brackets: cached [bytes], the lists that stay; travelling [bytes], those that
// came with the batch; terms, records and firsts of this; words, its memory; ranks [terms]; norms
// [documents]; answers [queries] and hits. A launch is for queries 0 to `queries`; `firsts`
// [queries + 1] says which blocks work for which. `rank` is the n-th term of each. Results do not
// depend on the order of threads.

#define DOCIDS 0
#define CHOSEN 1
#define TFS 2
#define GAPS 3

struct DecodeShared {
    u32 room[WARPS][MOST_BLOCK];
};
SHARED_IS(DecodeShared, DECODE_SHARED_BYTES);

struct SumShared {
    u32 sums[32];
};
SHARED_IS(SumShared, SUM_SHARED_BYTES);

// `items` [blocks]: a term; twice a segment, plus the column. A block of OPEN_THREADS for each.
extern "C" __global__ void __launch_bounds__(OPEN_THREADS)
ding_open(const u8* __restrict__ cached, const u8* __restrict__ travelling, const Term* __restrict__ terms,
          const uint2* __restrict__ items, u32* words) {
    SHARED(SumShared, shared);
    uint2 item = items[blockIdx.x];
    const Term& term = terms[item.x];
    open_column(term, list_of({cached, travelling}, term), item.y / 2, item.y % 2, shared.sums, words);
}

// A warp a block of a list: docids of all blocks, or of chosen ones; or term frequencies; or gaps.
extern "C" __global__ void __launch_bounds__(WARPS * 32)
ding_decode(const u8* __restrict__ cached, const u8* __restrict__ travelling, const Term* __restrict__ terms,
            const Record* __restrict__ records, const u32* __restrict__ firsts, u32 queries, u32 rank, u32 what,
            const Rank* __restrict__ ranks, u32* words) {
    SHARED(DecodeShared, shared);
    Share share = share_of(firsts, queries);
    const Record& record = records[share.query];
    u32 t = record.first_term + rank, warp = threadIdx.x / 32, slot = share.number * WARPS + warp;
    const Term& term = terms[t];
    if (slot >= (what == CHOSEN ? ranks[t].chosen : term.blocks)) return;
    u32 block = what == CHOSEN ? words[record.chosen + slot] : slot;
    u32* out = words + (what == TFS ? record.values : record.decoded) + (u64)slot * term.block_len;
    List list = list_of({cached, travelling}, term);
    if (what <= CHOSEN) decode_block<true>(term, list, words, 0, block, shared.room[warp], out);
    else decode_block<false>(term, list, words, what == TFS, block, shared.room[warp], out);
}

// Parallel Merge Find of a [m] in b [n], one level of it: for measurements and tests.
extern "C" __global__ void __launch_bounds__(TILE)
ding_merge_find(const u32* __restrict__ a, u32 m, const u32* __restrict__ b, u32 n, u32 level, u32 levels, u32 bits,
                u32* places) {
    Merging merging = {levels, bits};
    u64 i = (u64)(blockIdx.x * TILE + threadIdx.x) << splitter_shift(m, level, merging);
    if (i < m) places[i] = merge_find(a, m, (u32)i, b, n, places, level, merging);
}

extern "C" __global__ void __launch_bounds__(TILE)
ding_find(const u8* __restrict__ cached, const u8* __restrict__ travelling, const Term* __restrict__ terms,
          const Record* __restrict__ records, const u32* __restrict__ firsts, u32 queries, u32 rank, u32 level, u32 levels,
          u32 bits, const Rank* __restrict__ ranks, u32* words) {
    Share share = share_of(firsts, queries);
    Merging merging = {levels, bits};
    find_blocks({cached, travelling}, terms, records[share.query], ranks, rank, share.number, level, merging, words);
}

// A block for each query. `chosen` counts blocks, else candidates are counted.
extern "C" __global__ void __launch_bounds__(TILE)
ding_sum_counts(const Term* __restrict__ terms, const Record* __restrict__ records, u32 rank, u32 chosen, Rank* ranks,
                u32* words) {
    SHARED(SumShared, shared);
    const Record& record = records[blockIdx.x];
    u32 m = candidates_of(terms, ranks, record, rank);
    u32 all = sum_counts(words + record.counts, m / TILE + (m % TILE != 0), shared.sums);
    if (threadIdx.x > 0) return;
    if (chosen) ranks[record.first_term + rank].chosen = all;
    else ranks[record.first_term + rank].left = all;
}

extern "C" __global__ void __launch_bounds__(TILE)
ding_choose(const u8* __restrict__ cached, const u8* __restrict__ travelling, const Term* __restrict__ terms,
            const Record* __restrict__ records, const u32* __restrict__ firsts, u32 queries, u32 rank,
            const Rank* __restrict__ ranks, u32* words) {
    SHARED(SumShared, shared);
    Share share = share_of(firsts, queries);
    choose_blocks({cached, travelling}, terms, records[share.query], ranks, rank, share.number, shared.sums, words);
}

extern "C" __global__ void __launch_bounds__(TILE)
ding_match(const u8* __restrict__ cached, const u8* __restrict__ travelling, const Term* __restrict__ terms,
           const Record* __restrict__ records, const u32* __restrict__ firsts, u32 queries, u32 rank,
           const float* __restrict__ norms, u32 documents, const Rank* __restrict__ ranks, u32* words) {
    Share share = share_of(firsts, queries);
    match({cached, travelling}, terms, records[share.query], ranks, rank, share.number, norms, documents, words);
}

extern "C" __global__ void __launch_bounds__(TILE)
ding_compact(const Term* __restrict__ terms, const Record* __restrict__ records, const u32* __restrict__ firsts, u32 queries,
             u32 rank, const Rank* __restrict__ ranks, u32* words) {
    SHARED(SumShared, shared);
    Share share = share_of(firsts, queries);
    compact(terms, records[share.query], ranks, rank, share.number, shared.sums, words);
}

extern "C" __global__ void __launch_bounds__(TILE)
ding_scores(const Term* __restrict__ terms, const Record* __restrict__ records, const u32* __restrict__ firsts, u32 queries,
            const Rank* __restrict__ ranks, u32* words) {
    Share share = share_of(firsts, queries);
    sum_values(terms, records[share.query], ranks, share.number, words);
}

// Of OR: all accumulators become zero, four to a thread.
extern "C" __global__ void __launch_bounds__(TILE)
ding_clear(const Record* __restrict__ records, const u32* __restrict__ firsts, u32 queries, u32 documents, u32* words) {
    Share share = share_of(firsts, queries);
    u32 i = share.number * TILE + threadIdx.x;
    if (4 * (u64)i < documents) ((uint4*)(words + records[share.query].scores))[i] = make_uint4(0, 0, 0, 0);
}

// Of OR: adds the postings of a list to their documents' accumulators, a warp a block of the list.
extern "C" __global__ void __launch_bounds__(WARPS * 32)
ding_accumulate(const u8* __restrict__ cached, const u8* __restrict__ travelling, const Term* __restrict__ terms,
                const Record* __restrict__ records, const u32* __restrict__ firsts, u32 queries, u32 rank,
                const float* __restrict__ norms, u32 documents, u32* words) {
    Share share = share_of(firsts, queries);
    const Record& record = records[share.query];
    const Term& term = terms[record.first_term + rank];
    u32 block = share.number * WARPS + threadIdx.x / 32;
    if (block >= term.blocks) return;
    List list = list_of({cached, travelling}, term);
    u32 len = list.starts[block + 1] - list.starts[block];
    const u32* docids = words + record.decoded + (u64)block * term.block_len;
    const u32* tfs = words + record.values + (u64)block * term.block_len;
    u32* scores = words + record.scores;
    for (u32 i = lane_of(); i < len; i += 32) {
        u32 docid = docids[i];
        if (docid < record.from || docid >= record.to || docid >= documents) continue;
        float more = score_of(term.weight, tfs[i], norms[docid]);
        scores[docid] = __float_as_uint(__fadd_rn(__uint_as_float(scores[docid]), more));
    }
}

// A warp a group of scores, or of the maxima of `level` 1.
extern "C" __global__ void __launch_bounds__(WARPS * 32)
ding_maxima(const Term* __restrict__ terms, const Record* __restrict__ records, const u32* __restrict__ firsts, u32 queries,
            u32 level, u32 all_terms, u32 documents, const Rank* __restrict__ ranks, u32* words) {
    Share share = share_of(firsts, queries);
    const Record& record = records[share.query];
    u32 len = scores_of(terms, record, ranks, documents, all_terms), group = share.number * WARPS + threadIdx.x / 32;
    u32 groups = len / GROUP + (len % GROUP != 0);
    u64* maxima = (u64*)(words + record.maxima[level - 1]);
    if (level == 1) {
        if (group >= groups) return;
        u64 best = best_score(words + record.scores, len, group, NONE);
        if (lane_of() == 0) maxima[group] = best;
    } else {
        if ((u64)group * GROUP >= groups) return;
        u64 best = best_maximum((const u64*)(words + record.maxima[0]), groups, group, NONE, 0);
        if (lane_of() == 0) maxima[group] = best;
    }
}

// A warp for each query.
extern "C" __global__ void __launch_bounds__(32)
ding_extract(const Term* __restrict__ terms, const Record* __restrict__ records, u32 all_terms, u32 documents,
             const Rank* __restrict__ ranks, u32* words, u32* answers, u64* hits) {
    const Record& record = records[blockIdx.x];
    u32 len = scores_of(terms, record, ranks, documents, all_terms);
    u32 found = extract(record, len, all_terms, words, hits + record.hits);
    if (threadIdx.x == 0) answers[blockIdx.x] = found;
}
