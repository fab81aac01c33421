// A list of an index becomes one of a device: blocks of bp128, as they lie on disk, are decoded and their postings
// put where query_list.cuh has them. The host says which postings the windows have (src/gpu/query/unpack.rs); it
// has to decode only the blocks in which a window begins.
//
// A warp takes a block; a lane takes block_len / 32 postings of it, which follow each other. The docid of a
// posting is the docid before the block and the sum of all gaps up to its own.

// A block: where it begins in the payload, in words of four bytes; the docid before it; bits of a gap, and of a tf
// from bit 8 on; its postings. Docids count from the first document of the device's share, and wrap.
struct BlockLine {
    u32 place;
    u32 previous;
    u32 widths;
    u32 count;
};

// Value i of a stream of values of so many bits, 0 to 32. One word behind the stream may be read.
__device__ __forceinline__ u32 packed_value(const u32* words, u32 bits, u32 i) {
    if (bits == 0) return 0;
    u32 bit = i * bits, word = bit >> 5;
    u32 value = __funnelshift_r(words[word], words[word + 1], bit);
    return bits == 32 ? words[word] : value & ((1u << bits) - 1);
}

// 255 * tf / (tf + norm), rounded up, as the host has it: src/gpu/query/list.rs.
__device__ __forceinline__ u32 impact_of(u32 tf, float norm) {
    const float up = 255.0f * (1.0f + 3.0f * 1.1920928955078125e-7f);
    float f = (float)tf;
    float value = __fmul_rn(__fdiv_rn(f, __fadd_rn(f, norm)), up);
    u32 floor = (u32)value;
    if ((float)floor < value) floor++;
    return floor < 255 ? floor : 255;
}

// The greater of a byte and what is there already. Four bytes share a word.
__device__ __forceinline__ void raise_byte(u8* bytes, u32 at, u32 value) {
    u32* word = (u32*)(bytes + (at & ~3u));
    u32 shift = (at & 3) * 8, old = __ldcg(word);
    while ((old >> shift & 255) < value) {
        u32 was = atomicCAS(word, old, (old & ~(255u << shift)) | value << shift);
        if (was == old) break;
        old = was;
    }
}

// Blocks of a list, the first of whose postings has number `first` in the list. firsts [windows + 1]: the numbers of
// the first postings of the windows. The list has its starts, and zeros for its maxes. What does not fit sets
// `fault`, and nothing is written beyond the list.
extern "C" __global__ void query_unpack(const BlockLine* __restrict__ lines, u32 lines_len, u32 block_len, u32 first,
                                        const u32* __restrict__ payload, u32 payload_words, const u32* __restrict__ firsts,
                                        u32 windows, u32 documents, const float* __restrict__ norms, u8* place,
                                        u32 postings, u32* fault) {
    u32 lane = lane_of(), each = block_len / 32;
    u32 warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = gridDim.x * blockDim.x / 32;
    Term term;
    term.place = 0;
    term.postings = postings;
    term.exceptions = 0;
    List list = list_of(place, term, windows);
    u16* docids = (u16*)list.docids;
    u8 *impacts = (u8*)list.impacts, *tfs = (u8*)list.tfs, *maxes = (u8*)list.maxes;
    for (u32 number = warp; number < lines_len; number += warps) {
        BlockLine line = lines[number];
        u32 gap_bits = line.widths & 255, tf_bits = line.widths >> 8 & 255, gap_words = block_len / 32 * gap_bits;
        u64 end = (u64)line.place + gap_words + block_len / 32 * tf_bits;
        if (gap_bits > 32 || tf_bits > 32 || end > payload_words) {
            if (lane == 0) *fault = 1;
            continue;
        }
        const u32 *gaps = payload + line.place, *counts = gaps + gap_words;
        u32 sum = 0;
        for (u32 i = 0; i < each; i++) sum += packed_value(gaps, gap_bits, lane * each + i) + 1;
        u32 upto = sum;
        for (u32 step = 1; step < 32; step *= 2) {
            u32 other = __shfl_up_sync(ALL, upto, step);
            if (lane >= step) upto += other;
        }
        u32 docid = line.previous + upto - sum, window = NONE, most = 0;
        for (u32 i = 0; i < each; i++) {
            u32 value = lane * each + i;
            docid += packed_value(gaps, gap_bits, value) + 1;
            if (value >= line.count || docid >= documents) continue;
            u32 here = docid >> WINDOW_BITS, p = first + number * block_len + value;
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
                // Whoever has the last posting of a window fills what is left up to the next one.
                u32 to = after == firsts[windows] ? postings : list.starts[here + 1];
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
        // Most blocks lie in one window: then one lane speaks for all.
        u32 lowest = least_of_warp(window), highest = window == NONE ? 0 : window;
        for (u32 step = 16; step > 0; step /= 2) {
            u32 other = __shfl_xor_sync(ALL, highest, step);
            highest = other > highest ? other : highest;
        }
        if (lowest == NONE) continue;
        if (lowest == highest) {
            for (u32 step = 16; step > 0; step /= 2) {
                u32 other = __shfl_xor_sync(ALL, most, step);
                most = other > most ? other : most;
            }
            if (lane != 0) most = 0;
            window = lowest;
        }
        if (most > 0) raise_byte(maxes, window, most);
    }
}
