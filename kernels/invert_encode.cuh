// The kernels that encode the lists of a run. The postings of its batches stay on the device, each
// by term number, then docid; at the end they are gathered list by list, and the host says the
// numbers of the terms in the order of the lexicon: the place of a term there is its *rank*.
//
// 1. invert_copy, a scan: where each term's list begins, by number. invert_cursors_of_all, then by
//    batch invert_list_firsts, invert_gather, invert_advance: the parts of each list end to end.
// 2. invert_rank_counts: the length of each list by rank.
//
// If there is no room for all that is gathered, 2 comes first, and then 1 for some ranks at a time,
// with invert_cursors. Of what is gathered, for some ranks at a time:
//
// 3. invert_list_places: where each list begins. invert_count_parts, a scan: parts of lists, a full
//    block of 128 postings or a tail; a warp for each.
// 4. invert_measure_parts, a scan: bytes, widths and bound of each part. invert_bound_lists: bounds
//    of long lists.
// 5. invert_measure_lists, a scan: where each list begins. invert_write_parts: its bytes
//    (docs/index-format.md, Postings; src/index/list/encode.rs).
//
// src/score/bounds.rs says what a bound is.

#define LIST_BLOCK 128
// Lists of this many blocks have a bound of their own; every this many blocks have a place.
#define BOUND_FROM 8
#define ANCHOR_BLOCKS 16

// The least length code by tf code, NONE where there is none; then the undominated pairs.
struct FrontTable {
    u32 lengths[256];
    u16 pairs[256];
};

struct MeasureParts {
    FrontTable fronts[8];
};
SHARED_IS(MeasureParts, MEASURE_PARTS_SHARED_BYTES);

struct BoundLists {
    FrontTable front;
};
SHARED_IS(BoundLists, BOUND_LISTS_SHARED_BYTES);

struct WriteParts {
    u32 values[8][LIST_BLOCK];
};
SHARED_IS(WriteParts, WRITE_PARTS_SHARED_BYTES);

__device__ __forceinline__ u32 code_below(u32 value) {
    if (value < 32) return value;
    u32 exponent = 31 - (u32)__clz((int)value);
    u32 code = 16 * (exponent - 3) + (value >> (exponent - 4) & 15);
    return code > 255 ? 255 : code;
}

__device__ __forceinline__ u32 code_above(u32 tf) {
    u32 code = code_below(tf);
    u32 value = code < 32 ? code : (16 + code % 16) << (code / 16 - 1);
    return value == tf || code == 255 ? code : code + 1;
}

__device__ __forceinline__ u32 magnitude(u32 code) {
    if (code == 0) return 0;
    if (code >= 32) return code + 64;
    u32 exponent = 31 - (u32)__clz((int)code);
    return 16 * exponent + (code << 4 >> exponent);
}

// The bound of a front, by one warp: six bytes, the first lowest, in lane 0.
__device__ __forceinline__ u64 bound_of(FrontTable& front) {
    u32 count = 0, least = NONE;
    for (u32 word = 8; word-- > 0;) {
        u32 came = __ballot_sync(ALL, front.lengths[32 * word + lane_of()] != NONE);
        if (lane_of() != 0) continue;
        while (came != 0) {
            u32 bit = 31 - (u32)__clz((int)came);
            came ^= 1u << bit;
            u32 tf = 32 * word + bit, length = front.lengths[tf];
            if (least == NONE || length < least) {
                least = length;
                front.pairs[count++] = (u16)(tf | length << 8);
            }
        }
    }
    if (lane_of() != 0) return 0;
    for (; count > 3; count--) {
        u32 at = 0, loss = NONE;
        for (u32 i = 0; i + 1 < count; i++) {
            u32 here = front.pairs[i], next = front.pairs[i + 1];
            u32 tfs = magnitude(here & 255) - magnitude(next & 255);
            u32 lengths = magnitude(here >> 8) - magnitude(next >> 8);
            u32 apart = tfs < lengths ? tfs : lengths;
            if (apart < loss) {
                loss = apart;
                at = i;
            }
        }
        // The greater tf stays; the shorter length comes from the next.
        front.pairs[at] = (u16)((front.pairs[at] & 255) | (front.pairs[at + 1] & 0xff00));
        for (u32 i = at + 1; i + 1 < count; i++) front.pairs[i] = front.pairs[i + 1];
    }
    u64 bound = 0;
    for (u32 i = 0; i < 3 && count > 0; i++) bound |= (u64)front.pairs[i < count ? i : count - 1] << 16 * i;
    return bound;
}

__device__ __forceinline__ void put_bound(u8* to, u64 bound) {
    for (u32 i = 0; i < 6; i++) to[i] = (u8)(bound >> 8 * i);
}

__device__ __forceinline__ void put_word(u8* to, u32 word) {
    for (u32 i = 0; i < 4; i++) to[i] = (u8)(word >> 8 * i);
}

// The lists of a chunk: `dfs`, `firsts` [ranks]: their lengths, and where they begin among the
// gathered postings; `part_firsts` [ranks + 1]: the number of the first part of each.
struct Lists {
    const u32* docids;
    const u32* tfs;
    const u32* dfs;
    const u32* firsts;
    const u32* part_firsts;
    u32 ranks;
};

// A part of a list; each lane of a warp has four neighbouring postings.
struct Part {
    u32 rank;
    u32 number;
    u32 df;
    // Among the gathered postings.
    u32 first;
    u32 count;

    __device__ __forceinline__ Part(const Lists& lists, u32 part) {
        rank = part_of(lists.part_firsts, lists.ranks, part);
        number = part - lists.part_firsts[rank];
        df = lists.dfs[rank];
        first = lists.firsts[rank] + LIST_BLOCK * number;
        u32 left = df - LIST_BLOCK * number;
        count = left < LIST_BLOCK ? left : LIST_BLOCK;
    }
    __device__ __forceinline__ bool is_full() const { return count == LIST_BLOCK; }
    // Documents between posting `i` of the part and the one before it in its list.
    __device__ __forceinline__ u32 gap(const Lists& lists, u32 i) const {
        u32 before = number == 0 && i == 0 ? NONE : lists.docids[first + i - 1];
        return lists.docids[first + i] - before - 1;
    }
};

__device__ __forceinline__ u32 full_blocks(u32 df) { return df / LIST_BLOCK; }
__device__ __forceinline__ u32 all_blocks(u32 df) { return (df + LIST_BLOCK - 1) / LIST_BLOCK; }
__device__ __forceinline__ u32 anchors(u32 full) { return (full + ANCHOR_BLOCKS - 1) / ANCHOR_BLOCKS; }

__device__ __forceinline__ u32 or_of_warp(u32 value) {
    for (u32 step = 16; step > 0; step /= 2) value |= __shfl_xor_sync(ALL, value, step);
    return value;
}

// kept_terms, kept_docids [postings], kept_starts [postings + 1]: what stays of a batch, with
// docids from the run's first; counts [terms]: the lengths of the lists so far.
extern "C" __global__ void invert_keep(
    const u32* __restrict__ terms, const u32* __restrict__ documents, const u32* __restrict__ starts, u32 n,
    u32 first_docid, u32* kept_terms, u32* kept_docids, u32* kept_starts, u32* counts) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at > n) return;
    kept_starts[at] = starts[at];
    if (at == n) return;
    u32 term = terms[at];
    kept_terms[at] = term;
    kept_docids[at] = first_docid + documents[at];
    // From the first posting of a list to behind its last.
    if (at == 0 || terms[at - 1] != term) atomicAdd(&counts[term], 0u - at);
    if (at == n - 1 || terms[at + 1] != term) atomicAdd(&counts[term], at + 1);
}

// codes [documents]: of the lengths of documents.
extern "C" __global__ void invert_codes(const u32* __restrict__ lengths, u32 documents, u8* codes) {
    u32 document = blockIdx.x * blockDim.x + threadIdx.x;
    if (document < documents) codes[document] = (u8)code_below(lengths[document]);
}

// dfs [ranks]: counts [terms] by rank; numbers [ranks]: the terms.
extern "C" __global__ void invert_rank_counts(
    const u32* __restrict__ counts, const u32* __restrict__ numbers, u32 ranks, u32* dfs) {
    u32 rank = blockIdx.x * blockDim.x + threadIdx.x;
    if (rank < ranks) dfs[rank] = counts[numbers[rank]];
}

// to [n + 1]: values [n], and 0.
extern "C" __global__ void invert_copy(const u32* __restrict__ values, u32 n, u32* to) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at <= n) to[at] = at < n ? values[at] : 0;
}

// cursors [terms], where the list of each begins, become one more than where its next posting goes.
extern "C" __global__ void invert_cursors_of_all(u32 terms, u32* cursors) {
    u32 term = blockIdx.x * blockDim.x + threadIdx.x;
    if (term < terms) cursors[term]++;
}

// cursors [terms], 0: one more than where each gathered term begins. numbers, firsts [ranks].
extern "C" __global__ void invert_cursors(
    const u32* __restrict__ numbers, u32 ranks, const u32* __restrict__ firsts, u32* cursors) {
    u32 rank = blockIdx.x * blockDim.x + threadIdx.x;
    if (rank < ranks) cursors[numbers[rank]] = firsts[rank] + 1;
}

// list_firsts [terms]: where the list of each begins among the postings [n] of a batch, if there.
extern "C" __global__ void invert_list_firsts(const u32* __restrict__ terms, u32 n, u32* list_firsts) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < n && (at == 0 || terms[at - 1] != terms[at])) list_firsts[terms[at]] = at;
}

// docids, tfs [gathered postings]: those of a batch [n].
extern "C" __global__ void invert_gather(
    const u32* __restrict__ terms, const u32* __restrict__ kept_docids, const u32* __restrict__ starts, u32 n,
    const u32* __restrict__ list_firsts, const u32* __restrict__ cursors, u32* docids, u32* tfs) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n) return;
    u32 term = terms[at], cursor = cursors[term];
    if (cursor == 0) return;
    u32 to = cursor - 1 + (at - list_firsts[term]);
    docids[to] = kept_docids[at];
    tfs[to] = starts[at + 1] - starts[at];
}

// cursors [terms]: move on behind a batch.
extern "C" __global__ void invert_advance(
    const u32* __restrict__ terms, u32 n, const u32* __restrict__ list_firsts, u32* cursors) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n || (at < n - 1 && terms[at + 1] == terms[at])) return;
    u32 term = terms[at];
    if (cursors[term] != 0) cursors[term] += at - list_firsts[term] + 1;
}

// firsts [ranks]: where each list begins, by the cursors [terms] behind it; dfs, numbers [ranks].
extern "C" __global__ void invert_list_places(
    const u32* __restrict__ cursors, const u32* __restrict__ numbers, const u32* __restrict__ dfs, u32 ranks, u32* firsts) {
    u32 rank = blockIdx.x * blockDim.x + threadIdx.x;
    if (rank < ranks) firsts[rank] = cursors[numbers[rank]] - 1 - dfs[rank];
}

// part_firsts [ranks + 1]: parts of each list, and 0.
extern "C" __global__ void invert_count_parts(const u32* __restrict__ dfs, u32 ranks, u32* part_firsts) {
    u32 rank = blockIdx.x * blockDim.x + threadIdx.x;
    if (rank <= ranks) part_firsts[rank] = rank < ranks ? all_blocks(dfs[rank]) : 0;
}

// part_bytes [parts + 1]: of blocks and tails, and 0; heads [parts]: block widths; bounds [parts].
extern "C" __global__ void invert_measure_parts(
    const u32* __restrict__ docids, const u32* __restrict__ tfs, const u32* __restrict__ dfs, const u32* __restrict__ firsts,
    const u32* __restrict__ part_firsts, u32 ranks, u32 parts, const u8* __restrict__ codes, u32* part_bytes, u32* heads,
    u64* bounds) {
    SHARED(MeasureParts, shared);
    u32 part = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = lane_of();
    if (part >= parts) return;
    FrontTable& front = shared.fronts[threadIdx.x / 32];
    Lists lists = {docids, tfs, dfs, firsts, part_firsts, ranks};
    Part here(lists, part);
    bool bounded = here.df >= LIST_BLOCK;
    if (bounded) {
        for (u32 i = 0; i < 8; i++) front.lengths[32 * i + lane] = NONE;
    }
    __syncwarp();
    u32 all_gaps = 0, all_tfs = 0, bytes = 0;
    for (u32 i = 4 * lane; i < 4 * lane + 4 && i < here.count; i++) {
        u32 gap = here.gap(lists, i), tf = tfs[here.first + i];
        all_gaps |= gap;
        all_tfs |= tf - 1;
        bytes += posting_bytes(gap, tf);
        if (bounded) atomicMin(&front.lengths[code_above(tf)], (u32)codes[docids[here.first + i]]);
    }
    __syncwarp();
    u32 gap_bits = 32 - (u32)__clz((int)or_of_warp(all_gaps)), tf_bits = 32 - (u32)__clz((int)or_of_warp(all_tfs));
    bytes = __shfl_sync(ALL, sums_of_warp(bytes), 31);
    u64 bound = bounded ? bound_of(front) : 0;
    if (lane != 0) return;
    part_bytes[part] = here.is_full() ? LIST_BLOCK / 8 * (gap_bits + tf_bits) : bytes;
    heads[part] = gap_bits | tf_bits << 8;
    bounds[part] = bound;
    if (part == parts - 1) part_bytes[parts] = 0;
}

// list_bounds [ranks]: of the lists `longs` [blocks of the launch], each by one block.
extern "C" __global__ void invert_bound_lists(
    const u32* __restrict__ longs, const u32* __restrict__ part_firsts, const u64* __restrict__ bounds, u64* list_bounds) {
    SHARED(BoundLists, shared);
    u32 rank = longs[blockIdx.x];
    shared.front.lengths[threadIdx.x] = NONE;
    __syncthreads();
    for (u32 part = part_firsts[rank] + threadIdx.x; part < part_firsts[rank + 1]; part += blockDim.x) {
        for (u32 i = 0; i < 3; i++) {
            u32 pair = (u32)(bounds[part] >> 16 * i) & 0xffff;
            atomicMin(&shared.front.lengths[pair & 255], pair >> 8);
        }
    }
    __syncthreads();
    if (threadIdx.x >= 32) return;
    u64 bound = bound_of(shared.front);
    if (threadIdx.x == 0) list_bounds[rank] = bound;
}

// list_bytes [ranks + 1]: of each list, by where the bytes of its parts begin [parts + 1], and 0.
extern "C" __global__ void invert_measure_lists(
    const u32* __restrict__ dfs, const u32* __restrict__ part_firsts, u32 ranks, const u32* __restrict__ part_places,
    u32* list_bytes) {
    u32 rank = blockIdx.x * blockDim.x + threadIdx.x;
    if (rank > ranks) return;
    u32 bytes = 0;
    if (rank < ranks) {
        u32 full = full_blocks(dfs[rank]), blocks = all_blocks(dfs[rank]);
        bytes = part_places[part_firsts[rank + 1]] - part_places[part_firsts[rank]];
        if (full > 0) bytes += 4 * full + 4 * anchors(full) + 2 * full + 6 * (blocks + (blocks >= BOUND_FROM));
    }
    list_bytes[rank] = bytes;
}

// Byte `at` of values of `width` bits, one behind the other.
__device__ __forceinline__ u32 packed_byte(const u32* values, u32 width, u32 at) {
    u32 value = 8 * at / width, shift = 8 * at % width;
    u32 byte = values[value] >> shift;
    for (u32 have = width - shift; have < 8 && value + 1 < LIST_BLOCK; have += width) byte |= values[++value] << have;
    return byte & 255;
}

__device__ __forceinline__ void put_packed(u8* to, const u32* values, u32 width) {
    for (u32 at = lane_of(); at < LIST_BLOCK / 8 * width; at += 32) to[at] = (u8)packed_byte(values, width, at);
}

// lists [bytes]: each part to its place, and what the list says of it.
extern "C" __global__ void invert_write_parts(
    const u32* __restrict__ docids, const u32* __restrict__ tfs, const u32* __restrict__ dfs, const u32* __restrict__ firsts,
    const u32* __restrict__ part_firsts, u32 ranks, u32 parts, const u32* __restrict__ part_places,
    const u32* __restrict__ heads, const u64* __restrict__ bounds, const u64* __restrict__ list_bounds,
    const u32* __restrict__ list_places, u8* encoded) {
    SHARED(WriteParts, shared);
    u32 part = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = lane_of();
    if (part >= parts) return;
    u32* values = shared.values[threadIdx.x / 32];
    Lists lists = {docids, tfs, dfs, firsts, part_firsts, ranks};
    Part here(lists, part);
    u32 first_place = part_places[part_firsts[here.rank]], before = part_places[part] - first_place;
    u8* list = encoded + list_places[here.rank];
    u8* to = list + before;
    if (here.is_full()) {
        u32 gap_bits = heads[part] & 255, tf_bits = heads[part] >> 8;
        for (u32 i = lane; i < LIST_BLOCK; i += 32) values[i] = here.gap(lists, i);
        __syncwarp();
        put_packed(to, values, gap_bits);
        __syncwarp();
        for (u32 i = lane; i < LIST_BLOCK; i += 32) values[i] = tfs[here.first + i] - 1;
        __syncwarp();
        put_packed(to + LIST_BLOCK / 8 * gap_bits, values, tf_bits);
    } else {
        u32 bytes = 0, first = 4 * lane;
        for (u32 i = first; i < first + 4 && i < here.count; i++) {
            bytes += posting_bytes(here.gap(lists, i), tfs[here.first + i]);
        }
        u8* end = to + (sums_of_warp(bytes) - bytes);
        for (u32 i = first; i < first + 4 && i < here.count; i++) end = put_posting(end, here.gap(lists, i), tfs[here.first + i]);
    }
    u32 full = full_blocks(here.df), blocks = all_blocks(here.df);
    if (lane != 0 || full == 0) return;
    u8* last_docids = list + (part_places[part_firsts[here.rank + 1]] - first_place);
    u8* places = last_docids + 4 * (u64)full;
    u8* widths = places + 4 * (u64)anchors(full);
    u8* block_bounds = widths + 2 * (u64)full;
    if (here.is_full()) {
        put_word(last_docids + 4 * (u64)here.number, docids[here.first + LIST_BLOCK - 1]);
        if (here.number % ANCHOR_BLOCKS == 0) put_word(places + 4 * (here.number / ANCHOR_BLOCKS), before / (LIST_BLOCK / 8));
        widths[2 * (u64)here.number] = (u8)heads[part];
        widths[2 * (u64)here.number + 1] = (u8)(heads[part] >> 8);
    }
    put_bound(block_bounds + 6 * (u64)here.number, bounds[part]);
    if (here.number + 1 == blocks && blocks >= BOUND_FROM) put_bound(block_bounds + 6 * (u64)blocks, list_bounds[here.rank]);
}
