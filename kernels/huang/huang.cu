// Queries as in Huang, Ren, Zhao, Stones, Zhang, Wang and Liu, "GPU-Accelerated Block-Max Query
// Processing" (ICA3PP 2017), algorithm 1: a block of threads a query. Thread i of P has documents
// [i d, (i + 1) d), d being N / P, rounded up, and goes through them as a CPU does:
//   1. It finds the first posting of each list among its documents.
//   2. AND, OR, WAND or BMW keeps its best k.
//   3. When all threads have ended, the block merges what they found.
// Each score is the sum in the order of the query, each operation rounded. Bounds are added up in
// any order: `slack` makes up for the rounding.
//
// Arrays, sizes in brackets: cached [bytes], the lists that stay; travelling [bytes], those that
// came with the batch; terms and records; norms [documents]; words, the memory of the batch;
// answers [queries]: how many hits; stages [queries * 3]: cycles of the steps; hits. A launch is
// for blockDim.x = P threads and gridDim.x queries from `first` on. Shared memory: a cursor for
// each thread and term, a word for each thread, and one more. Results do not depend on the order of
// threads.

// A query.
struct Record {
    u64 heaps;         // u64 [capacity * P], in words of the memory of the batch
    u64 by_length;     // the numbers of its terms, 4 bits each, the shortest list first
    u32 first_term;
    u32 terms;
    u32 k;
    u32 capacity;      // of a heap
    u32 hits;          // the first of its hits
    u32 from;          // docids that are asked for
    u32 to;
    // times a threshold: a sum of bounds up to that is below the threshold
    float slack;
};

struct Run {
    const u8* cached;
    const u8* travelling;
    const Term* terms;
    const float* norms;
    u32* room;
    // a threshold of all threads, then the best score of each; NULL if each has its own alone
    u32* bar;
    u32 k;
    u32 count;         // of terms
    u32 end;           // behind its documents
};

__device__ __forceinline__ List list_of(const Run& run, u32 t) { return list_at(run.cached, run.travelling, run.terms[t]); }

// Brings a list, which stands before `docid`, to its first posting from there on. A call, as the
// next one: with a dozen copies of both, a kernel's code (115 KB) exceeds a multiprocessor's cache.
__device__ __noinline__ u32 go_on(const u8* cached, const u8* travelling, const Term* term, u32* words, u32 docid, u32 end) {
    Cursor cursor = load_cursor(words);
    go_to(list_at(cached, travelling, *term), cursor, docid, end);
    store_cursor(words, cursor);
    return cursor.docid;
}

// The term frequency of the posting at which a list stands.
__device__ __noinline__ u32 tf_here(const u8* cached, const u8* travelling, const Term* term, const u32* words) {
    return tf_of(list_at(cached, travelling, *term), load_cursor(words));
}

// Brings list `t` to its first posting from `docid` on.
__device__ __forceinline__ u32 seek(const Run& run, u32 t, u32 docid) {
    return go_on(run.cached, run.travelling, run.terms + t, words_of(run.room, t), docid, run.end);
}

// Scores a document by the lists that stand at it, and moves these to their next postings.
__device__ __forceinline__ void take(const Run& run, u32 docid, Heap& heap) {
    float norm = run.norms[docid], sum = 0.0f;
#pragma unroll 1
    for (u32 t = 0; t < run.count; t++) {
        if (docid_of(run.room, t) != docid) continue;
        u32 tf = tf_here(run.cached, run.travelling, run.terms + t, words_of(run.room, t));
        sum = __fadd_rn(sum, score_of(run.terms[t].weight, tf, norm));
        seek(run, t, docid + 1);
    }
    // A deleted document scores 0.
    if (sum > 0.0f) offer(heap, key_of(docid, sum));
}

// Documents with all terms: those of the shortest list are searched for in the others.
__device__ __forceinline__ void find_all(const Run& run, u64 by_length, Heap& heap) {
    u32 shortest = (u32)by_length & 15, docid = docid_of(run.room, shortest);
    while (docid != NONE) {
        u32 next = docid;
        for (u32 n = 1; n < run.count && next == docid; n++) {
            u32 t = (u32)(by_length >> 4 * n) & 15;
            next = docid_of(run.room, t);
            if (next < docid) next = seek(run, t, docid);
        }
        if (next == NONE) return;
        if (next == docid) {
            take(run, docid, heap);
            docid = docid_of(run.room, shortest);
        } else {
            docid = seek(run, shortest, next);
        }
    }
}

// Documents with any term.
__device__ __forceinline__ void find_any(const Run& run, Heap& heap) {
    for (;;) {
        u32 docid = NONE;
        for (u32 t = 0; t < run.count; t++) {
            u32 here = docid_of(run.room, t);
            docid = here < docid ? here : docid;
        }
        if (docid == NONE) return;
        take(run, docid, heap);
    }
}

__device__ __forceinline__ u32 number_at(u64 order, u32 n) { return (u32)(order >> 4 * n) & 15; }

// Sorts lists by the documents that they stand at; most are in order already.
__device__ __forceinline__ u64 sorted(const Run& run, u64 order) {
    for (u32 end = 1; end < run.count; end++) {
        u32 docid = docid_of(run.room, number_at(order, end));
        for (u32 n = end; n > 0 && docid_of(run.room, number_at(order, n - 1)) > docid; n--) {
            u64 differ = (order >> 4 * n ^ order >> 4 * (n - 1)) & 15;
            order ^= differ << 4 * n | differ << 4 * (n - 1);
        }
    }
    return order;
}

// Of the first `len` lists of an order that stand before a document, the one of the greatest
// weight: rare terms get farther.
__device__ __forceinline__ u32 rarest(const Run& run, u64 order, u32 len, u32 docid) {
    u32 found = number_at(order, 0);
    for (u32 n = 1; n < len; n++) {
        u32 t = number_at(order, n);
        if (docid_of(run.room, t) < docid && run.terms[t].weight > run.terms[found].weight) found = t;
    }
    return found;
}

// What the block of list `t` with the first posting from `docid` on adds to a score at most; `end`
// becomes the docid behind the block if that is less.
__device__ __forceinline__ float bound_at(const Run& run, u32 t, u32 docid, u32& end) {
    u32* words = words_of(run.room, t);
    u32 by = blockDim.x, block = words[SHALLOW * by], here = words[by];
    List list = list_of(run, t);
    block = block > here ? block : here;
    if (block < list.blocks && list.last[block] < docid) block = find_block(list, block + 1, docid);
    words[SHALLOW * by] = block;
    if (block >= list.blocks) return 0.0f;
    u32 last = list.last[block];
    end = last < end ? last + 1 : end;
    return __fmul_rn(run.terms[t].per_bound, __uint_as_float(list.records[block].w));
}

// The k-th of the best scores of all threads, which k documents reach; 0 if there are fewer.
__device__ __forceinline__ u32 least_of_best(const volatile u32* best, u32 k) {
    u32 value = ALL, at = 0;
    for (u32 n = 0; n < k; n++) {
        // The greatest behind (value, at); of equal ones the first.
        u32 next = 0, next_at = NONE;
        for (u32 i = 0; i < blockDim.x; i++) {
            u32 here = best[i];
            bool is_behind = here < value || (here == value && i > at);
            if (is_behind && (next_at == NONE || here > next)) {
                next = here;
                next_at = i;
            }
        }
        value = next;
        at = next_at;
    }
    return value;
}

// More hits than these are not looked for among the best of the threads.
#define MOST_SHARED 32u

// What the score of a document has to exceed to be among the best: that of the k-th of this thread;
// if threads share, of any one of the block, or the k-th of the best of each, which comes near that
// of all documents so far. A document with just that score may have a smaller docid than those of
// another thread; `slack` lets it pass.
__device__ __forceinline__ float threshold(const Run& run, const Heap& heap) {
    u32 own = (u32)(heap.least >> 32);
    if (run.bar != nullptr) {
        u32 top = (u32)(heap.best >> 32);
        volatile u32* best = run.bar + 1;
        if (top > best[threadIdx.x]) {
            best[threadIdx.x] = top;
            if (run.k <= blockDim.x && run.k <= MOST_SHARED) {
                u32 joint = least_of_best(best, run.k);
                own = joint > own ? joint : own;
            }
        }
        u32 all = *(volatile u32*)run.bar;
        if (own > all) atomicMax(run.bar, own);
        else own = all;
    }
    return __uint_as_float(own);
}

// The best documents with any term, by bounds of lists (WAND; Broder and others, 2003) or of their
// blocks too (BMW; Ding and Suel, 2011, algorithm 1).
template <bool BLOCK_MAX>
__device__ __forceinline__ void find_best(const Run& run, float slack, Heap& heap) {
    u64 order = 0xfedcba9876543210ull;
    for (;;) {
        order = sorted(run, order);
        float bar = __fmul_rn(threshold(run, heap), slack), sum = 0.0f;
        u32 pivot = 0, docid = NONE;
        for (; pivot < run.count; pivot++) {
            u32 t = number_at(order, pivot);
            docid = docid_of(run.room, t);
            if (docid == NONE) return;
            sum = __fadd_rn(sum, run.terms[t].most);
            if (sum > bar) break;
        }
        if (pivot == run.count) return;
        if (BLOCK_MAX) {
            u32 behind = pivot + 1, end = NONE;
            while (behind < run.count && docid_of(run.room, number_at(order, behind)) == docid) behind++;
            if (behind < run.count) end = docid_of(run.room, number_at(order, behind));
            sum = 0.0f;
            for (u32 n = 0; n < behind; n++) sum = __fadd_rn(sum, bound_at(run, number_at(order, n), docid, end));
            if (sum <= bar) {
                // No document before `end` gets in.
                seek(run, rarest(run, order, behind, end), end);
                continue;
            }
        }
        if (docid_of(run.room, number_at(order, 0)) == docid) take(run, docid, heap);
        else seek(run, rarest(run, order, pivot, docid), docid);
    }
}

enum Way { ALL_TERMS, ANY_TERM, BY_LISTS, BY_BLOCKS };

// Steps 1 to 3. `timed`: threads wait for each other behind step 1; `shares`: have one threshold.
template <Way WAY>
__device__ __forceinline__ void answer(const u8* cached, const u8* travelling, const Term* terms, const Record* records,
                                       u32 first, const float* norms, u32 documents, u32 timed, u32 shares,
                                       u32* words, u32* answers, u64* stages, u64* hits) {
    DYNAMIC_SHARED(u32, room);
    u32 query = first + blockIdx.x, threads = blockDim.x;
    const Record& record = records[query];
    long long times[4];
    times[0] = clock64();
    u64 share = documents / threads + (documents % threads != 0), begins = threadIdx.x * share, ends = begins + share;
    u32 to = record.to < documents ? record.to : documents;
    u32 start = begins > record.from ? (u32)begins : record.from;
    u32* bar = shares ? room + record.terms * CURSOR_WORDS * threads : nullptr;
    Run run = {cached, travelling,   terms + record.first_term, norms, room, bar,
               record.k, record.terms, ends < to ? (u32)ends : to};
    if (shares && threadIdx.x == 0) *bar = 0;
    if (shares) bar[1 + threadIdx.x] = 0;
    for (u32 t = 0; t < run.count; t++) {
        u32* of_list = words_of(room, t);
        store_cursor(of_list, before_all());
        if (start < run.end) seek(run, t, start);
        of_list[SHALLOW * threads] = of_list[threads];
    }
    if (timed || shares) __syncthreads();
    times[1] = clock64();
    Heap heap = {(u64*)(words + record.heaps) + threadIdx.x, 0, record.capacity, 0, 0};
    if (WAY == ALL_TERMS) find_all(run, record.by_length, heap);
    if (WAY == ANY_TERM) find_any(run, heap);
    if (WAY == BY_LISTS) find_best<false>(run, record.slack, heap);
    if (WAY == BY_BLOCKS) find_best<true>(run, record.slack, heap);
    __syncthreads();
    times[2] = clock64();
    u32 found = merge(heap, record.k, (u64*)room, hits + record.hits);
    times[3] = clock64();
    if (threadIdx.x > 0) return;
    answers[query] = found;
    for (u32 n = 0; n < 3; n++) stages[3 * query + n] = (u64)(times[n + 1] - times[n]);
}

#define ANSWER(name, way)                                                                                             \
    extern "C" __global__ void __launch_bounds__(512)                                                                 \
    name(const u8* __restrict__ cached, const u8* __restrict__ travelling, const Term* __restrict__ terms,            \
         const Record* __restrict__ records, u32 first, const float* __restrict__ norms, u32 documents, u32 timed,    \
         u32 shares, u32* words, u32* answers, u64* stages, u64* hits) {                                              \
        answer<way>(cached, travelling, terms, records, first, norms, documents, timed, shares, words, answers,       \
                    stages, hits);                                                                                    \
    }

ANSWER(huang_and, ALL_TERMS)
ANSWER(huang_or, ANY_TERM)
ANSWER(huang_wand, BY_LISTS)
ANSWER(huang_bmw, BY_BLOCKS)
