// OR where windows are many: groups of windows, few documents of which can be among the best.
//
// The lists of a window that add least to a sum are optional, as long as together they do not reach
// the bar: a document that has no others is out. And a posting of another list, a needed one, only
// matters if its document reaches the bar when all other lists add the most that they do there.
// 1. A warp finds the postings of each window in each list, and which of them are needed.
// 2. Documents of needed postings that matter come into a table, by their numbers in the group.
// 3. All postings are looked up in it, and add to the sums of the documents that are there.
// 4. These sums, which are those that a window has, are compared and zeroed as in query_or.cuh.

// Windows of a group.
#define GROUP 8
// Places in the table, each a word for a number and one for a sum. If needed lists have more
// postings than half of these, the windows of a group are taken one by one.
#define TABLE (WINDOW / 8)
// With fewer groups for each block all windows are taken one by one, or many blocks would be idle.
#define LEAST_GROUPS 4

// A list in a window of a group, which takes the place of a segment.
struct Part {
    const u16* docids;
    const u8* impacts;
    u32 len;
    u32 chunks;        // of this part and those before it
    u32 multiplier;
    u32 least;         // a posting that adds less does not matter; 256 if none does
};
static_assert(sizeof(Part) == sizeof(Segment) && 8 * GROUP == MOST_TERMS, "parts take the place of segments");

__device__ __forceinline__ Part* parts_of(OrShared<8>& shared) { return (Part*)shared.segments; }

// Step 1, by a warp. A lane has a window, and two of its lists.
__device__ __forceinline__ void look_up_group(OrShared<8>& shared, const u8* arena, const Term* terms,
                                              const Record& record, const State* states, u32 r, u32 window,
                                              u32 windows) {
    u32 lane = threadIdx.x, own = window + lane % GROUP, first = own << WINDOW_BITS;
    u32 here[2], len[2], most = 0;
    bool asked = own < windows && record.from <= first + (WINDOW - 1) && record.to > first;
    u32 threshold = __ldcg(&states[r].threshold);
    u32 bar = threshold > record.slack ? threshold - record.slack : 1;
    if (bar < record.floor) bar = record.floor;
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        u32 t = half * 4 + lane / GROUP;
        here[half] = len[half] = 0;
        if (t < record.terms && asked) {
            const Term& term = terms[record.first_term + t];
            List list = list_of(arena, term, windows);
            Part& part = parts_of(shared)[half * 32 + lane];
            u32 begin = list.starts[own];
            len[half] = list.starts[own + 1] - begin;
            part.docids = list.docids + begin;
            part.impacts = list.impacts + begin;
            part.multiplier = term.multiplier;
            here[half] = worth(list.maxes[own], term.multiplier);
        }
        most += here[half];
    }
    most += __shfl_xor_sync(ALL, most, 8);
    most += __shfl_xor_sync(ALL, most, 16);
    u32 chunks = 0, needed = 0;
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        u32 t = half * 4 + lane / GROUP, upto = 0;
        for (u32 u = 0; u < 8; u++) {
            u32 other = __shfl_sync(ALL, here[u / 4], u % 4 * GROUP + lane % GROUP);
            if (other < here[half] || (other == here[half] && u <= t)) upto += other;
        }
        if (most < bar) len[half] = 0;
        bool is_needed = len[half] > 0 && upto >= bar;
        u32 others = most - here[half];
        Part& part = parts_of(shared)[half * 32 + lane];
        part.len = len[half];
        part.least = !is_needed ? 256 : bar > others ? bar - others : 1;
        needed += sum_of_warp(is_needed ? len[half] : 0);
        part.chunks = chunks + sums_of_warp((len[half] + 127) / 128);
        chunks += sum_of_warp((len[half] + 127) / 128);
    }
    if (lane == 0) {
        shared.postings = needed;
        shared.bar = bar;
        shared.live = needed > 0 && !is_answered(record, states);
    }
}

// Where the search for a document begins, by its number from 1 on. Half of the places are free.
__device__ __forceinline__ u32 place_of(u32 number) { return number * 2654435769u >> (35 - WINDOW_BITS); }

__device__ __forceinline__ void insert(u32* table, u32 number) {
    u32 place = place_of(number);
    while (true) {
        u32 old = atomicCAS(table + place, 0, number);
        if (old == 0 || old == number) return;
        place = (place + 1) & (TABLE - 1);
    }
}

// `here` is what stands at the document's place.
__device__ __forceinline__ void add_if_there(u32* table, u32 number, u32 here, u32 more) {
    for (u32 place = place_of(number); here != 0; here = table[place]) {
        if (here == number) {
            atomicAdd(table + TABLE + place, more);
            return;
        }
        place = (place + 1) & (TABLE - 1);
    }
}

struct Places {
    u32 part;          // NONE if the warp has nothing to do
    uint2 docids;
    u32 impacts;       // 0 if the lane has no postings
};

// The four postings of a lane in a chunk, if there is one; `low` and `high` are the chunks up to
// the parts of all lanes.
template <bool INSERTS>
__device__ __forceinline__ Places fetch(OrShared<8>& shared, u32 low, u32 high, u32 chunk) {
    u32 p = (u32)(__popc(__ballot_sync(ALL, low <= chunk)) + __popc(__ballot_sync(ALL, high <= chunk)));
    Places four = {NONE, make_uint2(0, 0), 0};
    if (p == MOST_TERMS) return four;
    const Part& part = parts_of(shared)[p];
    if (INSERTS && part.least > 255) return four;
    four.part = p;
    u32 before = p == 0 ? 0 : parts_of(shared)[p - 1].chunks, at = (chunk - before) * 128 + lane_of() * 4;
    if (at < part.len) {
        four.docids = *(const uint2*)(part.docids + at);
        four.impacts = *(const u32*)(part.impacts + at);
    }
    return four;
}

template <bool INSERTS>
__device__ __forceinline__ void apply(OrShared<8>& shared, const Places& four) {
    const Part& part = parts_of(shared)[four.part];
    u32 m = part.multiplier, first = (four.part % GROUP << WINDOW_BITS) + 1;
    u32 numbers[4] = {first + (four.docids.x & 0xffff), first + (four.docids.x >> 16), first + (four.docids.y & 0xffff),
                      first + (four.docids.y >> 16)};
    if (INSERTS) {
        u32 least = part.least;
        for (u32 i = 0; i < 4; i++) {
            if (worth(four.impacts >> (8 * i) & 255, m) >= least) insert(shared.sums, numbers[i]);
        }
    } else {
        u32 here[4];
        for (u32 i = 0; i < 4; i++) here[i] = shared.sums[place_of(numbers[i])];
        for (u32 i = 0; i < 4; i++) {
            add_if_there(shared.sums, numbers[i], here[i], worth(four.impacts >> (8 * i) & 255, m));
        }
    }
}

// Step 2 or step 3, by a block.
template <bool INSERTS>
__device__ __forceinline__ void go_through(OrShared<8>& shared, u32 warps) {
    u32 low = parts_of(shared)[lane_of()].chunks, high = parts_of(shared)[32 + lane_of()].chunks;
    u32 chunks = __shfl_sync(ALL, high, 31), chunk = threadIdx.x / 32;
    Places four = fetch<INSERTS>(shared, low, high, chunk);
    for (; chunk < chunks; chunk += warps) {
        Places next = fetch<INSERTS>(shared, low, high, chunk + warps);
        if (four.part != NONE) apply<INSERTS>(shared, four);
        __syncwarp();
        four = next;
    }
}

// A group, by a block. False, with nothing done, if its needed lists have too many postings.
template <u32 BLOCK>
__device__ __forceinline__ bool one_group(OrShared<8>& shared, const u8* arena, const Term* terms, const Record& record,
                                          State* states, u32* bins, u64* keys, u32 r, u32 window, u32 windows) {
    u32 tid = threadIdx.x;
    if (tid < 32) look_up_group(shared, arena, terms, record, states, r, window, windows);
    __syncthreads();
    if (!shared.live) return true;
    if (shared.postings > TABLE / 2) return false;
    u32 bar = shared.bar;
    go_through<true>(shared, BLOCK / 32);
    __syncthreads();
    go_through<false>(shared, BLOCK / 32);
    __syncthreads();
#pragma unroll 1
    for (u32 place = tid; place < TABLE; place += BLOCK) {
        u32 number = shared.sums[place], sum = shared.sums[TABLE + place];
        if (number == 0) continue;
        shared.sums[place] = shared.sums[TABLE + place] = 0;
        if (sum >= bar) take<8>(shared, record, states, keys, r, window, number - 1, sum, false);
    }
    give<8, BLOCK>(shared, record, states, bins, keys, r, window, false);
    return true;
}

// A block takes one item after the other, windows or, with `GROUPS`, groups.
template <u32 BITS, u32 BLOCK, bool GROUPS>
__device__ __forceinline__ void or_windows(const u8* arena, const Term* terms, const Record* records, u32 first,
                                           u32 records_len, u32 windows, u32 step, State* states, u32* bins, u64* keys,
                                           u32* work) {
    SHARED(OrShared<BITS>, shared);
    u32 tid = threadIdx.x;
    bool is_sample = step > 1;
    const u32 QUADS = WINDOW / 128 * BITS;
    uint4* quads = (uint4*)shared.sums;
    for (u32 i = tid; i < QUADS; i += BLOCK) quads[i] = make_uint4(0, 0, 0, 0);
    for (u32 i = tid; i < BINS; i += BLOCK) shared.bins[i] = 0;
    if (tid == 0) shared.found_len = 0;
    u32 groups = records_len * ((windows + GROUP - 1) / GROUP);
    bool is_grouped = GROUPS && groups >= LEAST_GROUPS * gridDim.x;
    u32 each = is_grouped ? GROUP : step;
    u32 items = records_len * ((windows + each - 1) / each);
    u32 item = blockIdx.x;
    while (item < items) {
        u32 r = first + item % records_len;
        u32 window = item / records_len * each;
        // In the middle of the windows that it stands for, and no further than the last.
        if (is_sample && window + step / 2 < windows) window += step / 2;
        const Record& record = records[r];
        if (tid == BLOCK - 1) shared.next = gridDim.x + atomicAdd(work, 1);
        u32 end = window + 1;
        if constexpr (GROUPS) {
            if (is_grouped) {
                bool is_done = one_group<BLOCK>(shared, arena, terms, record, states, bins, keys, r, window, windows);
                end = is_done ? window : window + GROUP < windows ? window + GROUP : windows;
            }
        }
        for (; window < end; window++) {
            if (is_grouped) __syncthreads();
            one_window<BITS, BLOCK>(shared, arena, terms, record, states, bins, keys, r, window, windows, is_sample);
        }
        item = shared.next;
        __syncthreads();
    }
}
