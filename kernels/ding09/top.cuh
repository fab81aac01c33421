// Scores and the best k (section 8.2): the maxima of groups of 512 scores, and of groups of 512 of
// these; a warp takes the best out again and again, and the groups that it was in get new maxima.

#define GROUP 512

// The score of a candidate of AND: shares in the order of the query, each addition rounded.
__device__ __forceinline__ void sum_values(const Term* terms, const Record& record, const Rank* ranks, u32 tile, u32* words) {
    u32 m = candidates_of(terms, ranks, record, record.terms), i = tile * TILE + threadIdx.x;
    if (i >= m) return;
    u32 origin = words[record.origins[record.terms & 1] + i], postings = terms[record.first_term].postings;
    float sum = 0.0f;
    for (u32 row = 0; row < record.terms; row++) {
        sum = __fadd_rn(sum, __uint_as_float(words[record.values + (u64)row * postings + origin]));
    }
    words[record.scores + i] = __float_as_uint(sum);
}

__device__ __forceinline__ u32 scores_of(const Term* terms, const Record& record, const Rank* ranks, u32 documents, u32 all_terms) {
    return all_terms ? candidates_of(terms, ranks, record, record.terms) : documents;
}

__device__ __forceinline__ u64 score_key(const u32* scores, u32 i) { return key_of(i, __uint_as_float(scores[i])); }

// The best of group `group` of `len` scores, by a warp; `without` is not looked at.
__device__ __forceinline__ u64 best_score(const u32* scores, u32 len, u32 group, u32 without) {
    u64 best = 0;
    for (u32 n = lane_of(); n < GROUP; n += 32) {
        u32 i = group * GROUP + n;
        if (i >= len || i == without) continue;
        u64 key = score_key(scores, i);
        best = key > best ? key : best;
    }
    return best_of_warp(best);
}

// The best of group `group` of maxima, with `now` in place of that of `changed`.
__device__ __forceinline__ u64 best_maximum(const u64* maxima, u32 len, u32 group, u32 changed, u64 now) {
    u64 best = 0;
    for (u32 n = lane_of(); n < GROUP; n += 32) {
        u32 i = group * GROUP + n;
        if (i >= len) continue;
        u64 key = i == changed ? now : maxima[i];
        best = key > best ? key : best;
    }
    return best_of_warp(best);
}

// By a warp; returns how many hits there are.
__device__ __forceinline__ u32 extract(const Record& record, u32 len, u32 all_terms, u32* words, u64* hits) {
    u32* scores = words + record.scores;
    u64* groups = (u64*)(words + record.maxima[0]);
    u64* tops = (u64*)(words + record.maxima[1]);
    u32 groups_len = len / GROUP + (len % GROUP != 0);
    u32 tops_len = groups_len / GROUP + (groups_len % GROUP != 0);
    const u32* docids = words + record.docids[record.terms & 1];
    for (u32 h = 0; h < record.k; h++) {
        u64 best = 0;
        for (u32 i = lane_of(); i < tops_len; i += 32) best = tops[i] > best ? tops[i] : best;
        best = best_of_warp(best);
        if (best >> 32 == 0) return h;
        u32 i = ~(u32)best, group = i / GROUP, top = group / GROUP;
        u64 next = best_score(scores, len, group, i);
        u64 next_top = best_maximum(groups, groups_len, top, group, next);
        __syncwarp();
        if (lane_of() == 0) {
            hits[h] = all_terms ? key_of(docids[i], __uint_as_float((u32)(best >> 32))) : best;
            scores[i] = 0;
            groups[group] = next;
            tops[top] = next_top;
        }
        __syncwarp();
    }
    return record.k;
}
