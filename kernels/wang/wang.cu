// Queries as in Wang, Yu, Stones, Ren, Wang, Liu and Ren, "Efficient GPU-based Query Processing
// with Pruned List Caching in Search Engines" (algorithm 1): the best documents with all terms, in
// lists sorted best document first. A block of blockDim.x = B threads, a power of two, has a query,
// and takes rounds of B documents of the shortest list:
// 1. Each thread searches for one in the other lists, shortest first, until one lacks it.
// 2. Threads that found it in all score it: the static part first, then the terms in the order of
//    the query, each operation rounded, so that scores are the CPU's to the bit.
//   3. Keys that are better than the k-th so far are sorted and merged with the best.
// 4. If the k-th score is not below the global score of the first document that is not finished,
//    which no later one exceeds, the query is done.
//
// Different from the paper. Lists may be prefixes, and the printed test is not safe then: a round
// drops documents that lie beyond a prefix, and then compares with a later one. Here the first
// document counts that some list may lack because it was cut, if that is less than the first of the
// next round. Only keys that get in are sorted. The printed test reads the element behind the list;
// this does not. `slack` lets no rounding of sums mislead the test (score::wang).
//
// Arrays, sizes in brackets: cached [bytes], the lists that stay; travelling [bytes], those that
// came with the batch; terms and records; norms, statics and globals [documents]; answers [queries]
// uint4: how many hits, the docid from which the query is not answered, or NONE, and rounds; hits.
// A launch is for gridDim.x queries from `first` on. Shared memory: the best keys [capacity], those
// of a round [B], the posting of each thread in each list [terms * B], and how many keys a round
// has. Results do not depend on the order of threads.

// A query.
struct Record {
    u64 by_length;     // the numbers of its terms, 4 bits each, the shortest list first
    double slack;      // times a global score: upper bound of the score
    u32 first_term;
    u32 terms;
    u32 k;
    // a power of two; less than k if the shortest list has fewer documents
    u32 capacity;
    u32 hits;          // the first of its hits
    // the first docid that a cut list may lack; the number of documents if none is cut
    u32 cut;
};

extern "C" __global__ void __launch_bounds__(1024)
wang_and(const u8* __restrict__ cached, const u8* __restrict__ travelling, const Term* __restrict__ terms,
         const Record* __restrict__ records, u32 first, const float* __restrict__ norms, const float* __restrict__ statics,
         const float* __restrict__ globals, u32 documents, uint4* answers, u64* hits) {
    DYNAMIC_SHARED(u64, best);
    u32 query = first + blockIdx.x, threads = blockDim.x, i = threadIdx.x;
    const Record& record = records[query];
    u32 count = record.terms, k = record.k, capacity = record.capacity;
    u64* keys = best + capacity;
    u32* postings = (u32*)(keys + threads);
    u32* len = postings + count * threads;
    terms += record.first_term;
    u32 shortest = (u32)record.by_length & (MOST_TERMS - 1);
    List list = list_at(cached, travelling, terms[shortest]);
    for (u32 at = i; at < capacity; at += threads) best[at] = 0;
    if (i == 0) *len = 0;
    __syncthreads();

    u32 rest = record.cut < documents ? record.cut : NONE, rounds = 0;
    for (u32 begin = 0; begin < list.postings; begin += threads) {
        rounds++;
        u64 least = k <= capacity ? best[k - 1] : 0;
        bool has = i < list.postings - begin;
        u32 docid = has ? docid_at(list, begin + i) : NONE;
        postings[shortest * threads + i] = begin + i;
        for (u32 n = 1; n < count && has; n++) {
            u32 t = (u32)(record.by_length >> 4 * n) & (MOST_TERMS - 1);
            u32 posting = find_posting(list_at(cached, travelling, terms[t]), docid);
            postings[t * threads + i] = posting;
            has = posting != NONE;
        }
        keys[i] = 0;
        __syncthreads();
        if (has) {
            float norm = norms[docid], sum = statics[docid];
            for (u32 t = 0; t < count; t++) {
                u32 tf = tf_at(list_at(cached, travelling, terms[t]), postings[t * threads + i]);
                sum = __fadd_rn(sum, score_of(terms[t].weight, tf, norm));
            }
            u64 key = key_of(docid, sum);
            if (key > least) keys[atomicAdd(len, 1)] = key;
        }
        __syncthreads();
        u32 found = *len;
        if (found > 0) {
            u32 padded = 1;
            while (padded < found) padded *= 2;
            sort_round(keys, padded);
            if (i == 0) *len = 0;
            merge_round(best, capacity, keys, padded);
            __syncthreads();
        }
        u32 next = threads < list.postings - begin ? docid_at(list, begin + threads) : documents;
        u32 unfinished = next < record.cut ? next : record.cut;
        least = k <= capacity ? best[k - 1] : 0;
        if (least > 0 && unfinished < documents
            && (double)__uint_as_float((u32)(least >> 32)) >= __dmul_rn((double)globals[unfinished], record.slack)) {
            rest = NONE;
            break;
        }
        if (next >= record.cut) break;
    }

    u32 most = k < capacity ? k : capacity;
    for (u32 at = i; at < most; at += threads) {
        if (best[at] > 0) hits[record.hits + at] = best[at];
        bool is_last = best[at] > 0 && (at + 1 == most || best[at + 1] == 0);
        if (is_last) answers[query] = make_uint4(at + 1, rest, rounds, 0);
    }
    if (i == 0 && best[0] == 0) answers[query] = make_uint4(0, rest, rounds, 0);
}
