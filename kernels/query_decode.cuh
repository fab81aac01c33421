// Blocks of bp128 to docids and term frequencies, and nothing else: what decoding costs without norms, windows and
// bounds. `bench gpu-queries --only decode` measures it beside `query_unpack`, which makes the lists of the engine.
//
// A warp takes a block, and a lane four neighbouring postings of it, so that it adds up three gaps by itself and
// writes 16 bytes of docids and four of term frequencies at once.

// The bits of values i to i + 3 of a stream of values of so many bits, at most 16; i is a multiple of four. Two words
// behind the stream may be read: the tables of a parcel lie behind its blocks.
__device__ __forceinline__ u64 bits_of_four(const u32* words, u32 bits, u32 i) {
    u32 bit = i * bits, word = bit >> 5;
    u32 low = words[word], middle = words[word + 1], high = bits > 8 ? words[word + 2] : 0;
    return (u64)__funnelshift_r(middle, high, bit) << 32 | __funnelshift_r(low, middle, bit);
}

// These values. If they have more bits, they are read one by one.
__device__ __forceinline__ void four_values(u64 all, const u32* words, u32 bits, u32 i, u32* out) {
    u32 mask = (1u << (bits & 31)) - 1;
    if (bits <= 8) {
        for (u32 j = 0; j < 4; j++) out[j] = (u32)all >> (j * bits) & mask;
    } else if (bits <= 16) {
        for (u32 j = 0; j < 4; j++) out[j] = (u32)(all >> (j * bits)) & mask;
    } else {
        for (u32 j = 0; j < 4; j++) out[j] = packed_value(words, bits, i + j);
    }
}

// Block n of the parcel goes to places n * block_len and following; places behind the last posting of a list get NONE
// and 0. A term frequency of 255 stands for that and more. A line that does not fit the parcel sets `fault`. LEN is block_len
// where the compiler is to know it, and else 0: without a loop over parts of a block a thread has 32 registers, so that a
// multiprocessor is full, and with it 40.
template <u32 LEN>
__device__ __forceinline__ void decode_blocks(const BlockLine* __restrict__ lines, u32 lines_len, u32 block_len,
                                              const u32* __restrict__ parcel, u32 words, uint4* docids, u32* tfs,
                                              u32* fault) {
    if (LEN) block_len = LEN;
    u32 lane = lane_of(), each = block_len / 32;
    u32 warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = gridDim.x * blockDim.x / 32;
    for (u32 at_line = warp; at_line < lines_len; at_line += warps) {
        BlockLine line = lines[at_line];
        u32 count = line.widths >> 16, gap_bits = line.widths & 255, tf_bits = line.widths >> 8 & 255;
        u64 end = (u64)line.place + each * gap_bits + each * tf_bits;
        if (gap_bits > 32 || tf_bits > 32 || end > words) {
            if (lane == 0) *fault = 1;
            continue;
        }
        const u32 *gaps = parcel + line.place, *counts = gaps + each * gap_bits;
        u32 before = line.previous;
        for (u32 from = 0; from < block_len; from += 128) {
            u32 value = from + 4 * lane, docid[4] = {0, 0, 0, 0}, tf[4];
            bool is_inside = value < block_len;
            // All loads are on their way before anything waits for one.
            u64 all_gaps = is_inside && gap_bits <= 16 ? bits_of_four(gaps, gap_bits, value) : 0;
            u64 all_tfs = is_inside && tf_bits <= 16 ? bits_of_four(counts, tf_bits, value) : 0;
            if (is_inside) four_values(all_gaps, gaps, gap_bits, value, docid);
            docid[0] += 1;
            for (u32 j = 1; j < 4; j++) docid[j] += docid[j - 1] + 1;
            u32 sum = sums_of_warp(docid[3]);
            u32 base = before + sum - docid[3];
            if (from + 128 < block_len) before = __shfl_sync(ALL, before + sum, 31);
            if (!is_inside) continue;
            four_values(all_tfs, counts, tf_bits, value, tf);
            u32 bytes = 0;
            if (count == block_len && tf_bits < 8) {
                for (u32 j = 0; j < 4; j++) {
                    docid[j] += base;
                    bytes |= (tf[j] + 1) << (8 * j);
                }
            } else {
                for (u32 j = 0; j < 4; j++) {
                    bool is_there = value + j < count;
                    docid[j] = is_there ? docid[j] + base : NONE;
                    bytes |= (!is_there ? 0 : tf[j] < 254 ? tf[j] + 1 : 255) << (8 * j);
                }
            }
            u64 place = ((u64)at_line * block_len + value) / 4;
            docids[place] = make_uint4(docid[0], docid[1], docid[2], docid[3]);
            tfs[place] = bytes;
        }
    }
}

extern "C" __global__ void query_decode(const BlockLine* __restrict__ lines, u32 lines_len, u32 block_len,
                                        const u32* __restrict__ parcel, u32 words, uint4* docids, u32* tfs,
                                        u32* fault) {
    decode_blocks<0>(lines, lines_len, block_len, parcel, words, docids, tfs, fault);
}

// The same for blocks of 128.
extern "C" __global__ void query_decode_128(const BlockLine* __restrict__ lines, u32 lines_len, u32 block_len,
                                            const u32* __restrict__ parcel, u32 words, uint4* docids, u32* tfs,
                                            u32* fault) {
    decode_blocks<128>(lines, lines_len, block_len, parcel, words, docids, tfs, fault);
}
