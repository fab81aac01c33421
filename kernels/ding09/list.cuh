// Layout and decoding of postings lists of `rice` and `pfor` in the memory of a device.
//
// Blocks and what they share lie as on disk (docs/index-format.md, Postings);
// src/gpu/ding09/list.rs puts a directory before them. From a list's place, each array from a
// multiple of 16 on:
//   last      [blocks] u32       docid of the last posting of each block, which searches compare
//   starts    [blocks + 1] u32   postings before each block
//   segments  [blocks] u32       the segment of each block
//   records   [segments] Segment
//   bytes     what lies as on disk; tails as u32 docids and then u32 term frequencies
//
// A block is decoded by a warp, 128 values at a time, four to a lane (ding09, section 6):
// 1. rice: the bits of the unary vector are looked at one to a lane. The rank of a zero among the
//    zeros is the number of a value; the ones before it are the sum of all quotients up to that
//    value: a prefix sum over bits, compacted at zeros. pfor: overflows of the block's exceptions
//    go to their places.
// 2. The low bits are read from their slots and summed up in the block (localised prefix sum).
// 3. docid = docid before the block + i + 1 (gaps are stored less one) + sum of the low bits +
//    2^width * sum of the quotients.
// Without sums the values themselves come out: gaps, or term frequencies.

#define RICE 0
#define PFOR 1
#define PLAIN 2
// Postings of a block at most.
#define MOST_BLOCK 512
// The values of a column that a lane holds, and a warp.
#define OWN 4
#define CHUNK 128
#define WARPS 8

// One column (gaps, or term frequencies) of a segment; places are bytes from the list's.
struct Column {
    u64 bodies;        // low bits of the first block, or plain values
    // rice: where each block begins in the unary vector; pfor: slots of the overflows
    u64 begins;
    u64 unary;         // rice: the unary vector; pfor: slots of the distances between exceptions
    u64 rest[2];       // pfor: exceptions of these two arrays, two arrays of u32 each
    u32 width;
    u32 opened;        // pfor: where the exceptions go, in words from the term's
    u32 exceptions;
    u32 widths[2];     // pfor: of the two arrays
    u32 counts[2];     // pfor: exceptions of the two arrays
    u32 spare;
};

struct Segment {
    u32 first;         // its first block in the list
    u32 blocks;
    u32 before;        // docid before its first posting
    u32 stride;        // bytes from block to block, of both columns together
    u32 codec;
    u32 spare;
    Column columns[2];
};

struct Term {
    u64 place;         // of its list, in bytes
    u64 opened;        // of its exceptions among the words of the batch
    u32 blocks;
    u32 segments;
    u32 postings;
    u32 row;           // its number in the query
    float weight;
    u32 block_len;
    u32 travels;       // if the list came with the batch, and is not in the cache
    u32 spare;
};

struct Places {
    const u8* cached;
    const u8* travelling;
};

struct List {
    const u8* bytes;
    const u32* last;
    const u32* starts;
    const u32* segment_of;
    const Segment* segments;
};

__device__ __forceinline__ List list_of(Places places, const Term& term) {
    List list;
    const u8* at = (term.travels ? places.travelling : places.cached) + term.place;
    list.bytes = at;
    list.last = (const u32*)at;
    at += padded(4 * (u64)term.blocks);
    list.starts = (const u32*)at;
    at += padded(4 * ((u64)term.blocks + 1));
    list.segment_of = (const u32*)at;
    at += padded(4 * (u64)term.blocks);
    list.segments = (const Segment*)at;
    return list;
}

// The exceptions of a column of pfor, opened: firsts [blocks + 1], places, overflows.
struct Exceptions {
    u32* firsts;
    u32* places;
    u32* highs;
};

__device__ __forceinline__ Exceptions exceptions_of(u32* words, const Term& term, const Segment& segment, u32 column) {
    const Column& of = segment.columns[column];
    Exceptions exceptions;
    exceptions.firsts = words + term.opened + of.opened;
    exceptions.places = exceptions.firsts + segment.blocks + 1;
    exceptions.highs = exceptions.places + of.exceptions;
    return exceptions;
}

// Step 1 of rice, by a warp: of each of `len` values the ones up to its zero, from bit `first` on.
__device__ __forceinline__ void sum_unary(const u8* bytes, u64 first, u32 len, u32* ones) {
    u32 lane = lane_of(), found = 0;
    for (u32 base = 0; found < len; base += 32) {
        u32 own = bits_at(bytes, first + 32 * (u64)(base + lane), 32);
        for (u32 w = 0; w < 32 && found < len; w++) {
            u32 zeros = ~__shfl_sync(ALL, own, w);
            u32 rank = found + __popc(zeros & ((1u << lane) - 1));
            if ((zeros >> lane & 1) && rank < len) ones[rank] = 32 * (base + w) + lane - rank;
            found += __popc(zeros);
        }
    }
}

// Decodes a block, by a warp: docids, or a column's values plus one. `room` [MOST_BLOCK]: its own.
template <bool SUMS>
__device__ __forceinline__ void decode_block(const Term& term, const List& list, u32* words, u32 column, u32 block,
                                             u32* room, u32* out) {
    u32 lane = lane_of();
    u32 len = list.starts[block + 1] - list.starts[block];
    const Segment& segment = list.segments[list.segment_of[block]];
    const Column& of = segment.columns[column];
    u32 before = block == segment.first ? segment.before : list.last[block - 1];
    if (segment.codec == PLAIN) {
        const u32* values = (const u32*)(list.bytes + of.bodies);
        for (u32 i = lane; i < len; i += 32) {
            u32 less = SUMS || column == 1 ? 0 : i == 0 ? before : values[i - 1];
            out[i] = values[i] - less;
        }
        return;
    }
    u32 number = block - segment.first, width = of.width;
    bool is_rice = segment.codec == RICE;
    if (is_rice) {
        u32 begin = word_at(list.bytes, of.begins + 4 * (u64)number);
        sum_unary(list.bytes, 8 * of.unary + begin, len, room);
    } else {
        for (u32 i = lane; i < len; i += 32) room[i] = 0;
        __syncwarp();
        Exceptions exceptions = exceptions_of(words, term, segment, column);
        u32 end = exceptions.firsts[number + 1];
        for (u32 x = exceptions.firsts[number] + lane; x < end; x += 32) {
            room[exceptions.places[x] - number * len] = exceptions.highs[x];
        }
    }
    __syncwarp();
    u64 slots = 8 * (of.bodies + (u64)number * segment.stride);
    u32 carry = before;
    for (u32 base = 0; base < len; base += CHUNK) {
        u32 first = base + OWN * lane, values[OWN], sum = 0;
        for (u32 n = 0; n < OWN; n++) {
            u32 i = first + n, value = 0;
            if (i < len) {
                value = bits_at(list.bytes, slots + (u64)i * width, width);
                u32 high = is_rice && !SUMS ? room[i] - (i == 0 ? 0 : room[i - 1]) : room[i];
                if (!is_rice || !SUMS) value += shifted(high, width);
            }
            sum += value;
            values[n] = SUMS ? sum : value;
        }
        u32 upto = SUMS ? sums_of_warp(sum) : 0;
        for (u32 n = 0; n < OWN; n++) {
            u32 i = first + n;
            if (i >= len) continue;
            u32 value = values[n] + 1;
            if (SUMS) {
                value += carry + (upto - sum) + i;
                if (is_rice) value += shifted(room[i], width);
            }
            out[i] = value;
        }
        if (SUMS) carry += __shfl_sync(ALL, upto, 31);
    }
    __syncwarp();
}

// The term frequency of posting `i` of a block alone, by a thread (section 8.2).
__device__ __forceinline__ u32 fetch_tf(const Term& term, const List& list, u32* words, u32 block, u32 i) {
    const Segment& segment = list.segments[list.segment_of[block]];
    const Column& of = segment.columns[1];
    if (segment.codec == PLAIN) return ((const u32*)(list.bytes + of.bodies))[i];
    u32 number = block - segment.first, high = 0;
    u32 low = bits_at(list.bytes, 8 * (of.bodies + (u64)number * segment.stride) + (u64)i * of.width, of.width);
    if (segment.codec == RICE) {
        u64 first = 8 * of.unary + word_at(list.bytes, of.begins + 4 * (u64)number);
        u32 begin = i == 0 ? 0 : find_zero(list.bytes, first, i - 1) + 1;
        high = find_zero(list.bytes, first + begin, 0);
    } else {
        Exceptions exceptions = exceptions_of(words, term, segment, 1);
        u32 end = exceptions.firsts[number + 1], place = number * term.block_len + i;
        u32 x = find(exceptions.places, exceptions.firsts[number], end, place);
        if (x < end && exceptions.places[x] == place) high = exceptions.highs[x];
    }
    return low + shifted(high, of.width) + 1;
}
