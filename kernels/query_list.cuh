// Layout of postings lists in the memory of a device, and the records of a batch; see query.cu.
//
// A list, from its place in the arena; W windows of 2^WINDOW_BITS docids, P postings with padding:
//   starts     [W + 1] u32    where the postings of each window begin
//   maxes      [W] u8         the greatest impact of each window
//   docids     [P] u16        docids, less the first of their window; rising in a window
//   impacts    [P] u8         255 * score / most of the list, rounded up; 0 if deleted or padding
//   tfs        [P] u8         term frequencies; 255 stands for that and more
//   exceptions [X] u32, [X] u32   postings with a tf of 255 or more, rising, and their tfs
// Each array begins at a multiple of 16 bytes, the postings of a window at a multiple of four;
// padding repeats the docid before it. P is a multiple of 16.

// Sizes that no source defines are those of QueryTuning in src/gpu/query.rs.
#define WINDOW (1u << WINDOW_BITS)
#define MOST_TERMS 64
#define BINS 256
#define OVERFLOWN 0xffffffffu

// A term of a query; src/gpu/query/plan.rs.
struct Term {
    u64 place;         // of its list in the arena, in bytes
    u32 postings;      // P
    u32 exceptions;    // X
    // a posting adds impact * multiplier / 2^16, rounded up, to the sum of its document
    u32 multiplier;
    float weight;
    // the number in the query of the term with the n-th shortest list, n being this one's
    u16 shorter;
    u16 formula;
    float more;        // see other_score
};

// A query.
struct Record {
    u64 keys;          // the first of its candidates
    u64 sorted;        // the first of its places to sort in, where SORTED are not enough
    u32 first_term;
    u32 terms;
    u32 k;
    // a document whose sum is this far below that of the k-th may be among the best k
    u32 slack;
    u32 from;          // docids that are asked for
    u32 to;
    u32 capacity;      // candidates
    u32 after;         // nothing is done if this record has k hits, or NONE
    u32 hits;          // the first of its hits
    float per_unit;    // of AND: score to bin
    u32 bar;           // sums below are not looked at in a sample
    u32 floor;         // nor are sums (of AND: bins) below this at any time
};

struct State {
    u32 threshold;     // k documents have sums (of AND: bins) of this or more
    u32 count;         // candidates, written or not
    u32 hits;          // in an answer, or OVERFLOWN
    u32 spare;
};

struct List {
    const u32* starts;
    const u8* maxes;
    const u16* docids;
    const u8* impacts;
    const u8* tfs;
    const u32* exceptions;
    u32 exceptions_len;
};

__device__ __forceinline__ u32 least_of_warp(u32 value) {
    for (u32 step = 16; step > 0; step /= 2) {
        u32 other = __shfl_xor_sync(ALL, value, step);
        value = other < value ? other : value;
    }
    return value;
}

__device__ __forceinline__ u32 greatest_of_warp(u32 value) {
    for (u32 step = 16; step > 0; step /= 2) {
        u32 other = __shfl_xor_sync(ALL, value, step);
        value = other > value ? other : value;
    }
    return value;
}

__device__ __forceinline__ u32 padded(u32 bytes) { return (bytes + 15) & ~15u; }

__device__ __forceinline__ List list_of(const u8* arena, const Term& term, u32 windows) {
    List list;
    const u8* at = arena + term.place;
    list.starts = (const u32*)at;
    at += padded(4 * (windows + 1));
    list.maxes = at;
    at += padded(windows);
    list.docids = (const u16*)at;
    at += 2 * (u64)term.postings;
    list.impacts = at;
    at += term.postings;
    list.tfs = at;
    at += term.postings;
    list.exceptions = (const u32*)at;
    list.exceptions_len = term.exceptions;
    return list;
}

// The first place from `low` to before `high` whose docid is not below `docid`, or `high`. By a
// thread, or by a warp: 32 places at a time, since the steps of a search wait for each other.
template <bool BY_WARP>
__device__ __forceinline__ u32 find(const u16* docids, u32 low, u32 high, u32 docid) {
    while (BY_WARP && low < high) {
        u32 step = (high - low + 31) / 32, at = low + lane_of() * step;
        u32 less = (u32)__popc(__ballot_sync(ALL, at < high && docids[at] < docid));
        if (less == 0) return low;
        u32 end = low + less * step;
        low += (less - 1) * step + 1;
        if (end < high) high = end;
    }
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (docids[middle] < docid) low = middle + 1;
        else high = middle;
    }
    return low;
}

__device__ __forceinline__ u32 tf_of(const List& list, u32 at) {
    u32 tf = list.tfs[at];
    if (tf < 255) return tf;
    return list.exceptions[list.exceptions_len + find(list.exceptions, 0, list.exceptions_len, at)];
}

// The formula is that of all terms.
__device__ __forceinline__ float score_of(const Term& term, u32 tf, float norm) {
    if (term.formula == SATURATION) return score_of(term.weight, tf, norm);
    return other_score(term.formula, term.weight, term.more, tf, norm);
}

// The score of a document: terms in the query's order, operations rounded. By a thread or a warp.
template <bool BY_WARP>
__device__ __forceinline__ float exact_score(const u8* arena, const Term* terms, const Record& record, u32 windows,
                                             const float* norms, u32 docid) {
    u32 window = docid >> WINDOW_BITS, offset = docid & (WINDOW - 1);
    float norm = norms[docid], sum = 0.0f;
    for (u32 t = 0; t < record.terms; t++) {
        const Term& term = terms[record.first_term + t];
        List list = list_of(arena, term, windows);
        u32 end = list.starts[window + 1];
        u32 at = find<BY_WARP>(list.docids, list.starts[window], end, offset);
        if (at < end && list.docids[at] == offset) {
            sum = __fadd_rn(sum, score_of(term, tf_of(list, at), norm));
        }
    }
    return sum;
}

// The greatest bin such that it and those above have k documents; 0 if all have fewer. By a warp.
__device__ __forceinline__ u32 kth_bin(const u32* bins, u32 k, u32 lane) {
    u32 own[8], sum = 0;
    for (u32 i = 0; i < 8; i++) {
        own[i] = __ldcg(bins + (BINS - 1 - (8 * lane + i)));
        sum += own[i];
    }
    u32 upto = sums_of_warp(sum);
    u32 reached = __ballot_sync(ALL, upto >= k);
    u32 bin = 0, here = upto - sum;
    bool open = true;
    for (u32 i = 0; i < 8; i++) {
        here += own[i];
        if (open && here >= k) {
            bin = BINS - 1 - (8 * lane + i);
            open = false;
        }
    }
    u32 first = reached == 0 ? 31 : (u32)__ffs((int)reached) - 1;
    bin = __shfl_sync(ALL, bin, first);
    return reached == 0 ? 0 : bin;
}

// A query has nothing to do if the record before it has enough.
__device__ __forceinline__ bool is_answered(const Record& record, const State* states) {
    return record.after != NONE && __ldcg(&states[record.after].count) >= record.k;
}
