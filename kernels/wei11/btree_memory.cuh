// The arrays in the memory of a device while it indexes a run; `btree.cu` fills them.
//
// Arrays, sizes in brackets; all numbers count from 0, NONE is 2^32 - 1:
//   roots    [collections]      the root of each tree, or NONE
//   nodes    [nodes * 128]      words of nodes, src/papers/wei11/btree/node.rs
//   strings  [words]            words of strings, src/papers/wei11/btree/strings.rs
//   records  [terms * 8]        words of records, below
//   slices   [units * 8]        bytes of slices, below
//   counters [COUNTERS]         see COUNT_*; zero when the run begins
//   spares   [warps * 8]        what each warp has left of its last chunk of the four arenas: next
//                               and end; zero when the run begins
//
// Record: last docid, its tf, documents between it and the posting before, df, first slice, last
// slice, place in the last slice (low half) and its level, bytes of all closed postings. The last
// posting is open: it is in no slice. Slice: 16 << min(level / 2, 8) bytes, its last four the
// number of the next slice; levels from LAST_LEVEL on are one. Slices hold postings in the form of
// src/codec/folded.rs; their numbers count 8 bytes.

// Sizes that no source defines are those of TreeTuning in src/papers/wei11/gpu/btree.rs.
#define COUNT_NODES 0
#define COUNT_STRINGS 1
#define COUNT_RECORDS 2
#define COUNT_SLICES 3
#define COUNT_NEXT 4
#define COUNT_FULL 5
#define COUNT_TERMS 6
#define COUNT_POSTINGS 7
#define COUNT_LIST_BYTES 8

// Units of a chunk that a warp takes of an arena, and from how many on a piece is taken alone.
#define CHUNK_NODES 8
#define CHUNK_STRINGS 256
#define CHUNK_RECORDS 64
#define CHUNK_SLICES 1024
#define ALONE_SLICES 128

struct Spare {
    u32 next;
    u32 end;
};

struct Arena {
    u32* roots;
    u32* nodes;
    u64* strings;
    u32* records;
    u8* slices;
    u64* counters;
    const u32* most;
    // In shared memory, for they are used seldom.
    Spare* spare;
    u32* totals;
};

// What a warp counts until its end, in the order of the counters from COUNT_TERMS on.
#define TERMS 0
#define LISTED 1
#define LIST_BYTES 2

// Words lane, 32 + lane, 64 + lane and 96 + lane of a node: lane 0 has the number of terms and the
// leaf indicator, lane i + 1 string and record of term i, lane i child and cache i.
struct Node {
    u32 head;
    u32 mark;
    u32 child;
    u32 cache;
};

// Takes `count` units of an arena; NONE when it is full, which is counted.
__device__ __forceinline__ u32 take(const Arena& arena, u32 which, u32 count, u32 chunk, u32 alone) {
    Spare spare = arena.spare[which];
    if (spare.end - spare.next < count) {
        u32 want = count < alone ? chunk : count;
        u64 start = 0;
        if (lane_of() == 0) start = atomicAdd(&arena.counters[which], (u64)want);
        start = __shfl_sync(ALL, start, 0);
        if (start + want > arena.most[which]) {
            if (lane_of() == 0) atomicAdd(&arena.counters[COUNT_FULL], 1ull << (16 * which));
            return NONE;
        }
        if (count >= alone) return (u32)start;
        spare.next = (u32)start;
        spare.end = (u32)start + want;
    }
    u32 at = spare.next;
    spare.next += count;
    __syncwarp();
    if (lane_of() == 0) arena.spare[which] = spare;
    __syncwarp();
    return at;
}

// The first level of the longest slices.
#define LAST_LEVEL 16

__device__ __forceinline__ u32 slice_bytes(u32 level) {
    return 16u << ((level < LAST_LEVEL ? level : LAST_LEVEL) >> 1);
}

__device__ __forceinline__ u32 vbyte_bytes(u64 value) {
    u32 bits = 64 - __clzll((long long)(value | 1));
    return (bits + 6) / 7;
}

// A posting in the form of src/codec/folded.rs.
struct Folded {
    u64 gap;
    u32 tf;
    u32 gap_bytes;
    u32 bytes;

    __device__ __forceinline__ Folded(u32 gap_minus_one, u32 tf_) {
        gap = (u64)gap_minus_one << 1 | (tf_ > 1);
        tf = tf_ - 2;
        gap_bytes = vbyte_bytes(gap);
        bytes = gap_bytes + (tf_ > 1 ? vbyte_bytes(tf) : 0);
    }

    __device__ __forceinline__ u8 byte(u32 i) const {
        bool first = i < gap_bytes;
        u64 value = first ? gap >> (7 * i) : (u64)tf >> (7 * (i - gap_bytes));
        return (u8)((value & 127) | (i + 1 == gap_bytes || i + 1 == bytes ? 0 : 128));
    }
};

