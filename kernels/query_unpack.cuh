// Turns lists of an index into lists of a device. The host sends a parcel
// (src/gpu/query/parcel.rs): pieces that it has made go to the arena as they are; blocks of bp128,
// as on disk, are decoded and their postings go where query_list.cuh has them. The host says which
// postings the windows have (src/gpu/query/unpack.rs), for which it decodes only the blocks in
// which a window begins.
//
// A warp takes a block, 32 neighbouring postings at a time, so that lanes read and write
// neighbours. A docid is that before the block plus the sum of all gaps up to its own.

// A block: its place, in words from the parcel's first; the docid before it, counted from the first
// document of the device's share, so that it wraps; bits of a gap, from bit 8 on of a tf, from bit
// 16 on its postings; the number in the list of its first posting.
struct BlockLine {
    u32 place;
    u32 previous;
    u32 widths;
    u32 number;
};

// The list of consecutive blocks.
struct PortionRecord {
    u64 place;         // in the arena, in bytes
    // [windows + 1] numbers of the first postings of the windows, in words from the parcel's first
    u32 firsts;
    u32 postings;      // P
    u32 block_len;
    u32 spare[3];
};

// Bytes that the host has made, in units of 16.
struct Piece {
    u64 to;            // in the arena, in bytes
    u32 from;          // in the parcel
    u32 units;
};

// Value i of a stream of values of this many bits, 0 to 32. One word behind the stream may be read.
__device__ __forceinline__ u32 packed_value(const u32* words, u32 bits, u32 i) {
    if (bits == 0) return 0;
    u32 bit = i * bits, word = bit >> 5;
    u32 value = __funnelshift_r(words[word], words[word + 1], bit);
    return bits == 32 ? words[word] : value & ((1u << bits) - 1);
}

// Of saturation, as in src/gpu/query/list.rs.
__device__ __forceinline__ u32 impact_of(u32 tf, float norm) {
    const float up = 255.0f * (1.0f + 8.0f * 1.1920928955078125e-7f);
    float f = (float)tf;
    float value = __fmul_rn(__fdiv_rn(f, __fadd_rn(f, norm)), up);
    u32 floor = (u32)value;
    if ((float)floor < value) floor++;
    return floor < 255 ? floor : 255;
}

// Four bytes share a word.
__device__ __forceinline__ void raise_byte(u8* bytes, u32 at, u32 value) {
    u32* word = (u32*)(bytes + (at & ~3u));
    u32 shift = (at & 3) * 8, old = __ldcg(word);
    while ((old >> shift & 255) < value) {
        u32 was = atomicCAS(word, old, (old & ~(255u << shift)) | value << shift);
        if (was == old) break;
        old = was;
    }
}

// Puts pieces into the arena, a block a piece.
extern "C" __global__ void query_put(const Piece* __restrict__ pieces, u32 pieces_len, const uint4* __restrict__ parcel,
                                     u8* arena) {
    for (u32 number = blockIdx.x; number < pieces_len; number += gridDim.x) {
        Piece piece = pieces[number];
        uint4* to = (uint4*)(arena + piece.to);
        for (u32 i = threadIdx.x; i < piece.units; i += blockDim.x) to[i] = parcel[piece.from + i];
    }
}

// Blocks of lists whose starts are written and whose maxes are 0. `parcel` has `words` words. What
// does not fit sets `fault`; nothing is written beyond the list.
extern "C" __global__ void query_unpack(const BlockLine* __restrict__ lines, u32 lines_len, const u32* __restrict__ owners,
                                        const PortionRecord* __restrict__ portions, const u32* __restrict__ parcel,
                                        u32 words, u32 windows, u32 documents, const float* __restrict__ norms, u8* arena,
                                        u32* fault) {
    u32 lane = lane_of();
    u32 warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = gridDim.x * blockDim.x / 32;
    for (u32 at_line = warp; at_line < lines_len; at_line += warps) {
        BlockLine line = lines[at_line];
        const PortionRecord& portion = portions[owners[at_line]];
        u32 block_len = portion.block_len, each = block_len / 32, count = line.widths >> 16;
        u32 gap_bits = line.widths & 255, tf_bits = line.widths >> 8 & 255, gap_words = each * gap_bits;
        u64 end = (u64)line.place + gap_words + each * tf_bits;
        if (gap_bits > 32 || tf_bits > 32 || end > words) {
            if (lane == 0) *fault = 1;
            continue;
        }
        Term term;
        term.place = portion.place;
        term.postings = portion.postings;
        term.exceptions = 0;
        List list = list_of(arena, term, windows);
        u16* docids = (u16*)list.docids;
        u8 *impacts = (u8*)list.impacts, *tfs = (u8*)list.tfs, *maxes = (u8*)list.maxes;
        const u32* firsts = parcel + portion.firsts;
        const u32 *gaps = parcel + line.place, *counts = gaps + gap_words;
        u32 before = line.previous, window = NONE, most = 0;
        for (u32 i = 0; i < each; i++) {
            u32 value = 32 * i + lane;
            u32 gap = value < count ? packed_value(gaps, gap_bits, value) + 1 : 0;
            u32 docid = before + sums_of_warp(gap);
            before = __shfl_sync(ALL, docid, 31);
            if (value >= count || docid >= documents) continue;
            u32 here = docid >> WINDOW_BITS, p = line.number + value;
            u32 begin = firsts[here], after = firsts[here + 1], at = list.starts[here] + p - begin;
            if (p < begin || p >= after) {
                *fault = 1;
                continue;
            }
            u32 tf = packed_value(counts, tf_bits, value) + 1;
            u32 worth = impact_of(tf, norms[docid]);
            docids[at] = (u16)(docid & (WINDOW - 1));
            impacts[at] = (u8)worth;
            tfs[at] = (u8)(tf < 255 ? tf : 255);
            if (p + 1 == after) {
                // The lane with a window's last posting pads up to the next window.
                u32 to = after == firsts[windows] ? portion.postings : list.starts[here + 1];
                for (u32 pad = at + 1; pad < to; pad++) {
                    docids[pad] = (u16)(docid & (WINDOW - 1));
                    impacts[pad] = 0;
                    tfs[pad] = 0;
                }
            }
            if (here != window && most > 0) raise_byte(maxes, window, most);
            most = here == window && most > worth ? most : worth;
            window = here;
        }
        // Most blocks lie in one window: then one lane raises its max.
        u32 lowest = least_of_warp(window), highest = greatest_of_warp(window == NONE ? 0 : window);
        if (lowest == NONE) continue;
        if (lowest == highest) {
            most = greatest_of_warp(most);
            if (lane != 0) most = 0;
            window = lowest;
        }
        if (most > 0) raise_byte(maxes, window, most);
    }
}
