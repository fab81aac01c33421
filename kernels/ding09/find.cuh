// Intersection (ding09, sections 7 and 8.1) of candidates A, rising, with a longer list B.
//
// Parallel Merge Find: of each A[i] the place j with B[j - 1] < A[i] <= B[j]. Level 1 of L levels
// of splitters finds the places of every 2^shift-th element of A in all of B; each further level
// those of more elements, between the places of the two splitters around them; the last pass all
// that are left. With L = 0 each element is looked for in all of B.
//
// 1. Merge Find against the heads of the blocks of B: the docids of their last postings.
//   2. Blocks that were found are chosen, each once; only these are decoded.
// 3. Merge Find in them, each block being a segment of its own; term frequencies of matches alone.
//
// Candidates are handled in tiles, a thread each: what a tile retains is counted, one block per
// query sums the counts, and what is retained is moved together.

#define TILE 256

// A query. Places are in words of the batch's memory.
struct Record {
    u64 docids[2];     // candidates
    u64 origins[2];    // of each its number among the postings of the shortest list
    u64 slots;         // of each candidate its place among the heads, then among the chosen blocks
    u64 counts;        // of each tile
    u64 chosen;        // blocks
    u64 decoded;       // postings of blocks, block_len apart
    // of AND, of each term and posting of the shortest list: its share of the score; of OR: tfs
    u64 values;
    u64 scores;        // of AND: of each candidate; of OR: of each document
    u64 maxima[2];     // u64: the best of each 512 scores, and of each 512 of these
    u32 first_term;    // of AND, the shortest list first; of OR in the order of the query
    u32 terms;
    u32 k;
    u32 hits;          // the first of its hits
    u32 from;          // docids that are asked for
    u32 to;
    u32 spare[2];
};

// What became of a term of AND.
struct Rank {
    u32 chosen;        // blocks that were decoded
    u32 left;          // candidates that have the term and all before it
};

// Which query a block works for, and the number of the block among those of the query.
struct Share {
    u32 query;
    u32 number;
};

// `firsts` [queries + 1] rise.
__device__ __forceinline__ Share share_of(const u32* firsts, u32 queries) {
    u32 query = part_of(firsts, queries, blockIdx.x);
    return {query, blockIdx.x - firsts[query]};
}

// Candidates before rank `rank`.
__device__ __forceinline__ u32 candidates_of(const Term* terms, const Rank* ranks, const Record& record, u32 rank) {
    if (rank == 0) return terms[record.first_term].postings;
    return ranks[record.first_term + rank - 1].left;
}

// Levels of splitters of Parallel Merge Find, and 2^bits splitters for each of the level before;
// with no bits about m^(1 / (levels + 1)) of m elements.
struct Merging {
    u32 levels;
    u32 bits;
};

// Splitters of a level, from 1 on, are every 2^shift-th of `len` elements; at levels + 1, all.
__device__ __forceinline__ u32 splitter_shift(u32 len, u32 level, Merging merging) {
    u32 all = 32 - (u32)__clz((int)len), levels = merging.levels;
    if (merging.bits == 0 || level > levels) return all * (levels + 1 - level) / (levels + 1);
    return merging.bits * level < all ? all - merging.bits * level : 0;
}

// The place of a[i] in b [n], by those of the splitters of the level before.
__device__ __forceinline__ u32 merge_find(const u32* a, u32 m, u32 i, const u32* b, u32 n, const u32* places, u32 level,
                                          Merging merging) {
    u32 low = 0, high = n;
    if (level > 1) {
        u32 shift = splitter_shift(m, level - 1, merging), before = i >> shift << shift;
        u64 behind = (u64)before + (1u << shift);
        if (before == i) return places[i];
        low = places[before];
        if (behind < m) high = places[behind];
    }
    return find(b, low, high, a[i]);
}

// Whether candidate `i`, found at block `block`, is the first that was found there.
__device__ __forceinline__ bool is_first(const u32* a, u32 i, const List& list, u32 block) {
    return i == 0 || (block > 0 && a[i - 1] <= list.last[block - 1]);
}

// Step 1 of the last level also counts the blocks that are chosen. All threads of a block.
__device__ __forceinline__ void find_blocks(Places lists, const Term* terms, const Record& record, const Rank* ranks,
                                            u32 rank, u32 tile, u32 level, Merging merging, u32* words) {
    const Term& term = terms[record.first_term + rank];
    u32 m = candidates_of(terms, ranks, record, rank);
    if (tile * TILE >= m) return;
    List list = list_of(lists, term);
    const u32* a = words + record.docids[rank & 1];
    u32* places = words + record.slots;
    u32 shift = splitter_shift(m, level, merging);
    u64 i = (u64)(tile * TILE + threadIdx.x) << shift;
    bool first = false;
    if (i < m) {
        u32 block = merge_find(a, m, (u32)i, list.last, term.blocks, places, level, merging);
        places[i] = block;
        first = block < term.blocks && is_first(a, (u32)i, list, block);
    }
    if (level <= merging.levels) return;
    u32 count = __syncthreads_count(first);
    if (threadIdx.x == 0) words[record.counts + tile] = count;
}

// Counts of tiles become the sums of those before; returns that of all. All threads of a block.
__device__ __forceinline__ u32 sum_counts(u32* counts, u32 tiles, u32* room) {
    u32 carry = 0;
    for (u32 base = 0; base < tiles; base += blockDim.x) {
        u32 t = base + threadIdx.x, total, own = t < tiles ? counts[t] : 0;
        u32 upto = sums_of_block(room, own, total);
        if (t < tiles) counts[t] = carry + upto - own;
        carry += total;
    }
    return carry;
}

// Step 2.
__device__ __forceinline__ void choose_blocks(Places lists, const Term* terms, const Record& record, const Rank* ranks,
                                              u32 rank, u32 tile, u32* room, u32* words) {
    const Term& term = terms[record.first_term + rank];
    u32 m = candidates_of(terms, ranks, record, rank), i = tile * TILE + threadIdx.x, total;
    if (tile * TILE >= m) return;
    List list = list_of(lists, term);
    const u32* a = words + record.docids[rank & 1];
    u32 block = i < m ? words[record.slots + i] : term.blocks;
    bool first = block < term.blocks && is_first(a, i, list, block);
    u32 slot = words[record.counts + tile] + sums_of_block(room, first, total) - 1;
    if (first) words[record.chosen + slot] = block;
    if (i < m) words[record.slots + i] = block < term.blocks ? slot : NONE;
}

// Step 3, or at rank 0 all postings of the shortest list that are asked for.
__device__ __forceinline__ void match(Places lists, const Term* terms, const Record& record, const Rank* ranks, u32 rank,
                                      u32 tile, const float* norms, u32 documents, u32* words) {
    const Term& term = terms[record.first_term + rank];
    u32 m = candidates_of(terms, ranks, record, rank), i = tile * TILE + threadIdx.x;
    if (tile * TILE >= m) return;
    List list = list_of(lists, term);
    bool matches = false;
    if (i < m) {
        u32 docid, block, at, origin = i;
        if (rank == 0) {
            block = find(list.starts + 1, 0, term.blocks, i + 1);
            at = i - list.starts[block];
            docid = words[record.decoded + (u64)block * term.block_len + at];
            matches = docid >= record.from && docid < record.to && docid < documents;
            words[record.docids[0] + i] = docid;
            words[record.origins[0] + i] = i;
        } else {
            u32 slot = words[record.slots + i];
            docid = words[record.docids[rank & 1] + i];
            origin = words[record.origins[rank & 1] + i];
            if (slot != NONE) {
                block = words[record.chosen + slot];
                u32 len = list.starts[block + 1] - list.starts[block];
                const u32* docids = words + record.decoded + (u64)slot * term.block_len;
                at = find(docids, 0, len, docid);
                matches = at < len && docids[at] == docid;
            }
        }
        if (matches) {
            u32 postings = terms[record.first_term].postings;
            float value = score_of(term.weight, fetch_tf(term, list, words, block, at), norms[docid]);
            words[record.values + (u64)term.row * postings + origin] = __float_as_uint(value);
        }
        words[record.slots + i] = matches ? 0 : NONE;
    }
    u32 count = __syncthreads_count(matches);
    if (threadIdx.x == 0) words[record.counts + tile] = count;
}

__device__ __forceinline__ void compact(const Term* terms, const Record& record, const Rank* ranks, u32 rank, u32 tile,
                                        u32* room, u32* words) {
    u32 m = candidates_of(terms, ranks, record, rank), i = tile * TILE + threadIdx.x, from = rank & 1, total;
    if (tile * TILE >= m) return;
    bool stays = i < m && words[record.slots + i] != NONE;
    u32 to = words[record.counts + tile] + sums_of_block(room, stays, total) - 1;
    if (!stays) return;
    words[record.docids[1 - from] + to] = words[record.docids[from] + i];
    words[record.origins[1 - from] + to] = words[record.origins[from] + i];
}
