// Layout of postings lists in the memory of a device for wang.cu, and the search in them.
//
// Of a list the first blocks are there, or all. Each block has its docids, less its first one, and
// its term frequencies at widths of its own, so that every posting can be read alone:
// src/gpu/wang/list.rs writes them, of indexes of any codec. Hash segmentation (Ao and others,
// 2011): h(x) = x >> shift cuts the docids into buckets, and a table says with which posting each
// begins. From a list's place, each array from a multiple of 16 on:
//   blocks    [blocks] uint4     x: docid of the first posting; y: place of the docids, in words
//                                from the bytes on; z: bits of a docid, 8 bits, and of a term
//                                frequency; w: place of these
//   table     [buckets + 1] u32  the first posting that is in the bucket or behind it
//   bytes     docids less that of the first posting, and term frequencies less 1, block by block

// Terms of a query at most: the numbers of all, 4 bits each, fit 64 bits.
#define MOST_TERMS 16

// A term of a query; src/gpu/wang/batch.rs.
struct Term {
    u64 place;         // of its list, in bytes
    u32 postings;      // that are there
    u32 buckets;
    u32 shift;
    u32 block_bits;    // a block has 1 << block_bits postings, except for the last
    u32 travels;       // if the list came with the batch, and is not in the cache
    float weight;
};

struct List {
    const uint4* blocks;
    const u32* table;
    const u8* bytes;
    u32 postings;
    u32 buckets;
    u32 shift;
    u32 block_bits;
};

__device__ __forceinline__ List list_at(const u8* cached, const u8* travelling, const Term& term) {
    List list;
    const u8* at = (term.travels ? travelling : cached) + term.place;
    u64 blocks = (term.postings + (1ull << term.block_bits) - 1) >> term.block_bits;
    list.blocks = (const uint4*)at;
    list.table = (const u32*)(list.blocks + blocks);
    list.bytes = (const u8*)list.table + padded(4 * ((u64)term.buckets + 1));
    list.postings = term.postings;
    list.buckets = term.buckets;
    list.shift = term.shift;
    list.block_bits = term.block_bits;
    return list;
}

// `width` bits of posting `i` of a block whose values begin `words` words from the bytes on.
__device__ __forceinline__ u32 value_at(const List& list, u32 words, u32 i, u32 width) {
    return bits_at(list.bytes + 4 * (u64)words, i * width, width);
}

__device__ __forceinline__ u32 docid_at(const List& list, u32 posting) {
    uint4 block = list.blocks[posting >> list.block_bits];
    return block.x + value_at(list, block.y, posting & ((1u << list.block_bits) - 1), block.z & 255);
}

__device__ __forceinline__ u32 tf_at(const List& list, u32 posting) {
    uint4 block = list.blocks[posting >> list.block_bits];
    return value_at(list, block.w, posting & ((1u << list.block_bits) - 1), block.z >> 8) + 1;
}

__device__ __forceinline__ u32 find_posting(const List& list, u32 docid) {
    u32 bucket = docid >> list.shift;
    if (bucket >= list.buckets) return NONE;
    u32 low = list.table[bucket], high = list.table[bucket + 1];
    while (low < high) {
        u32 middle = low + (high - low) / 2, here = docid_at(list, middle);
        if (here == docid) return middle;
        if (here < docid) low = middle + 1;
        else high = middle;
    }
    return NONE;
}
