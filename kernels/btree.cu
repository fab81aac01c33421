// The dictionary of one run: a B-tree for each trie collection, searched for every token and grown by
// one warp a collection; then read out in the order of the lexicon.
//
// Paper: Wei and JaJa, "A fast algorithm for constructing inverted files on heterogeneous platforms"
// (IPDPS 2011), sections III.B and III.D.2. Twin: src/dictionary/btree/ (forest.rs, run.rs, walk.rs).
//
// Kernels, in the order of their use:
//   btree_regroup   lays the streams of a parsed block end to end, collection by collection
//   btree_insert    looks every token up, inserts terms, appends postings
//   btree_measure   counts what collections hold
//   btree_collect   writes terms and postings out
//
// Steps of btree_insert, by a warp that has taken a collection from the work list:
//   1. The stream comes in pieces of 512 bytes, coalesced, into a window of two in shared memory; a
//      third is under way in registers.
//   2. From the root down: a node of 512 bytes is four coalesced loads, a word of each line for each
//      lane. The root and SLOTS - 1 other nodes stay in shared memory (slot: number mod SLOTS - 1).
//   3. 31 caches are compared at once, a ballot and a count give the place. Only lanes whose cache is
//      equal look at strings, each at its own.
//   4. A full child is split before it is entered; terms, strings and children move by shuffles.
//   5. A term that was found: its record of 32 bytes is asked for and used when the next term is
//      found, so that its latency is hidden. A new posting closes the one before, which is written
//      as bytes to the term's slices.
// Changed lines of a node are written through, those of other warps are never read: a collection
// belongs to one warp for the whole launch.
//
// Arrays, sizes in brackets; all numbers count from 0, NONE is 2^32 - 1:
//   roots    [collections]      the root of each tree, or NONE
//   nodes    [nodes * 128]      words of nodes, src/dictionary/btree/node.rs
//   strings  [words]            words of strings, src/dictionary/btree/strings.rs
//   records  [terms * 8]        words of records, below
//   slices   [units * 8]        bytes of slices, below
//   counters [COUNTERS]         see COUNT_*; zero when the run begins
//   spares   [warps * 8]        what each warp has left of its last chunk of the four arenas: next and
//                               end; zero when the run begins
//
// Record: last docid, its tf, documents between it and the posting before, df, first slice, last slice,
// place in the last slice (low half) and its level, bytes of all closed postings. The last posting is
// open: it is in no slice.
// Slice: 16 << min(level / 2, 8) bytes, the last four of them the number of the next slice. Slices hold
// postings in the form of src/codec/folded.rs. Numbers of slices count 8 bytes.
//
// Launch geometry: btree_insert any number of blocks of 32 * WARPS threads, the others any.
// Shared memory: about (1072 + 512 * SLOTS) * WARPS bytes, static. Order of results: that of the lexicon,
// whatever warp took what; places in the arenas differ from launch to launch.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#ifndef WARPS
#define WARPS 1
#endif
#ifndef SLOTS
#define SLOTS 8
#endif
#ifndef BLOCKS_PER_SM
#define BLOCKS_PER_SM 32
#endif

#define ALL 0xffffffffu
#define NONE 0xffffffffu

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
#define POSTINGS 1
#define LIST_BYTES 2

// Words lane, 32 + lane, 64 + lane and 96 + lane of a node: lane 0 has the number of terms and the
// leaf indicator, lane i + 1 string and record of term i, lane i child and cache i.
struct Node {
    u32 head;
    u32 mark;
    u32 child;
    u32 cache;
};

__device__ __forceinline__ u32 lane_of() { return threadIdx.x & 31; }

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

__device__ __forceinline__ u32 swapped(u32 x) { return __byte_perm(x, 0, 0x0123); }

// Step 1: the stream of one collection.
struct Stream {
    const uint4* bytes;
    u32 length;
    u32* window;
    u32 half;
    uint4 ahead;

    __device__ __forceinline__ uint4 load(u32 piece) const {
        u32 at = piece * 32 + lane_of();
        return (u64)at * 16 < length ? __ldg(bytes + at) : make_uint4(0, 0, 0, 0);
    }

    __device__ __forceinline__ void store(u32 piece, uint4 value) {
        ((uint4*)window)[(piece & 1) * 32 + lane_of()] = value;
    }

    __device__ __forceinline__ void begin() {
        uint4 first = load(0), second = load(1);
        ahead = load(2);
        half = 0;
        __syncwarp();
        store(0, first);
        store(1, second);
        __syncwarp();
    }

    // Makes at least 512 bytes from `at` on readable.
    __device__ __forceinline__ void reach(u32 at) {
        while (at >> 9 > half) {
            __syncwarp();
            store(half, ahead);
            half += 1;
            ahead = load(half + 2);
            __syncwarp();
        }
    }

    // Four bytes from `at` on, the first one lowest.
    __device__ __forceinline__ u32 four(u32 at) const {
        u32 word = at >> 2;
        return __funnelshift_r(window[word & 255], window[(word + 1) & 255], (at & 3) * 8);
    }

    // Word `k` of the string whose `rest` bytes begin at `at`.
    __device__ __forceinline__ u64 string_word(u32 at, u32 rest, u32 k) const {
        u32 skip = k == 0 ? 0 : 8 * k - 1;
        u64 word = (u64)swapped(four(at + skip)) << 32 | swapped(four(at + skip + 4));
        u32 have = rest - skip;
        if (have < 8) word &= ~(~0ull >> (8 * have));
        return k == 0 ? (u64)rest << 56 | word >> 8 : word;
    }
};

// A token: its suffix begins at `at` in the stream.
struct Token {
    u32 at;
    u32 length;
    u32 cache;
    __device__ __forceinline__ u32 rest() const { return length > 4 ? length - 4 : 0; }
};

// Step 2: nodes in shared memory. Lane i knows the number of the node in slot i.
struct Cached {
    u32* slots;
    u32 tag;

    __device__ __forceinline__ u32* place(u32 slot) const { return slots + slot * 128 + lane_of(); }
    __device__ __forceinline__ static u32 slot_of(u32 node) { return 1 + node % (SLOTS - 1); }

    __device__ __forceinline__ Node load(const Arena& arena, u32 node, u32 slot) {
        Node n;
        u32* shared = place(slot);
        if (__shfl_sync(ALL, tag, slot) == node) {
            n.head = shared[0];
            n.mark = shared[32];
            n.child = shared[64];
            n.cache = shared[96];
        } else {
            const u32* words = arena.nodes + (u64)node * 128 + lane_of();
            n.cache = words[96];
            n.child = words[64];
            n.head = words[0];
            n.mark = words[32];
            keep(node, slot, n);
        }
        return n;
    }

    __device__ __forceinline__ void keep(u32 node, u32 slot, const Node& n) {
        u32* shared = place(slot);
        shared[0] = n.head;
        shared[32] = n.mark;
        shared[64] = n.child;
        shared[96] = n.cache;
        if (lane_of() == slot) tag = node;
    }
};

// Writes all lines of a node, or all but that of the children.
__device__ __forceinline__ void write(const Arena& arena, u32 node, const Node& n, bool children) {
    u32* words = arena.nodes + (u64)node * 128 + lane_of();
    words[0] = n.head;
    words[32] = n.mark;
    words[96] = n.cache;
    if (children) words[64] = n.child;
}

// What stands at `from` and above moves up by one lane, and `value` takes its place.
__device__ __forceinline__ u32 moved(u32 own, u32 from, u32 value) {
    u32 lower = __shfl_up_sync(ALL, own, 1);
    u32 lane = lane_of();
    return lane < from ? own : lane == from ? value : lower;
}

// Puts a term before the `i`-th of a node that is not full.
__device__ __forceinline__ void insert(Node& n, u32 i, u32 cache, u32 string, u32 record) {
    u32 count = __shfl_sync(ALL, n.head, 0) + 1;
    n.cache = moved(n.cache, i, cache);
    n.head = moved(n.head, i + 1, string);
    n.mark = moved(n.mark, i + 1, record);
    if (lane_of() == 0) n.head = count;
}

// Step 4: splits the full child `below` (number `child`), the `i`-th of `above`. False when there is
// no room for a node; nothing is changed then.
__device__ __forceinline__ bool split(const Arena& arena, Cached& cached, u32 node, u32 slot, Node& above, u32 i,
                                      u32 child) {
    u32 number = take(arena, COUNT_NODES, 1, CHUNK_NODES, CHUNK_NODES + 1);
    if (number == NONE) return false;
    u32 lane = lane_of();
    u32 child_slot = Cached::slot_of(child);
    Node below = cached.load(arena, child, child_slot);
    u32 cache = __shfl_sync(ALL, below.cache, 15);
    u32 string = __shfl_sync(ALL, below.head, 16);
    u32 record = __shfl_sync(ALL, below.mark, 16);
    Node upper;
    upper.head = __shfl_down_sync(ALL, below.head, 16);
    upper.mark = __shfl_down_sync(ALL, below.mark, 16);
    upper.child = __shfl_down_sync(ALL, below.child, 16);
    upper.cache = __shfl_down_sync(ALL, below.cache, 16);
    if (lane >= 16) upper.head = upper.mark = upper.child = NONE;
    if (lane >= 15) upper.cache = NONE;
    if (lane == 0) {
        upper.head = below.head = 15;
        upper.mark = below.mark;
    }
    if (lane >= 16) below.head = below.mark = below.child = NONE;
    if (lane >= 15) below.cache = NONE;
    write(arena, number, upper, true);
    write(arena, child, below, true);
    cached.keep(child, child_slot, below);
    above.child = moved(above.child, i + 1, number);
    insert(above, i, cache, string, record);
    write(arena, node, above, true);
    cached.keep(node, slot, above);
    return true;
}

// Step 3: the place of a token in a node: the terms below it, and in `found` its record or NONE.
__device__ __forceinline__ u32 search(const Arena& arena, const Stream& stream, const Token& token,
                                      const Node& n, u32& found) {
    bool equal = n.cache == token.cache;
    u32 below = __popc(__ballot_sync(ALL, n.cache < token.cache));
    found = NONE;
    if (__any_sync(ALL, equal)) {
        u32 string = __shfl_down_sync(ALL, n.head, 1);
        u32 rest = token.rest();
        bool less = false, same = false;
        if (equal && string == NONE) {
            same = rest == 0;
            less = !same;
        } else if (equal && rest > 0) {
            // Words of both strings, until they differ or one of them ends.
            u64 own = arena.strings[string];
            u64 other = stream.string_word(token.at + 4, rest, 0);
            u32 own_rest = (u32)(own >> 56);
            u32 words = ((own_rest < rest ? own_rest : rest) + 8) / 8;
            own <<= 8;
            other <<= 8;
            for (u32 k = 1; own == other && k < words; k++) {
                own = arena.strings[string + k];
                other = stream.string_word(token.at + 4, rest, k);
            }
            less = own < other || (own == other && own_rest < rest);
            same = own == other && own_rest == rest;
        }
        __syncwarp();
        below += __popc(__ballot_sync(ALL, less));
        u32 at = __ballot_sync(ALL, same);
        if (at != 0) found = __shfl_sync(ALL, n.mark, __ffs(at) & 31);
    }
    return below;
}

// The number of a new string of a token, or NONE if it needs none. False when the pool is full.
__device__ __forceinline__ bool new_string(const Arena& arena, const Stream& stream, const Token& token, u32& string) {
    string = NONE;
    u32 rest = token.rest();
    if (rest == 0) return true;
    u32 words = (1 + rest + 7) / 8;
    string = take(arena, COUNT_STRINGS, words, CHUNK_STRINGS, CHUNK_STRINGS + 1);
    if (string == NONE) return false;
    if (lane_of() < words) {
        arena.strings[string + lane_of()] = stream.string_word(token.at + 4, rest, lane_of());
    }
    return true;
}

// A posting that waits for the record of its term.
struct Pending {
    u32 term;
    u32 docid;
    uint4 a;
    uint4 b;
};

__device__ __forceinline__ u32 slice_bytes(u32 level) {
    u32 twice = level >> 1;
    return 16u << (twice < 8 ? twice : 8);
}

// Bytes of a vbyte.
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

    // The `i`-th byte.
    __device__ __forceinline__ u8 byte(u32 i) const {
        bool first = i < gap_bytes;
        u64 value = first ? gap >> (7 * i) : (u64)tf >> (7 * (i - gap_bytes));
        return (u8)((value & 127) | (i + 1 == gap_bytes || i + 1 == bytes ? 0 : 128));
    }
};

// Step 5: appends the posting. False when the arena of slices is full; nothing is changed then.
__device__ __forceinline__ bool append(const Arena& arena, Pending& p) {
    if (p.term == NONE) return true;
    u32 lane = lane_of();
    u32* record = arena.records + (u64)p.term * 8;
    u32 last = p.a.x, tf = p.a.y, gap = p.a.z, df = p.a.w;
    // All lanes have read the record before one of them writes it.
    __syncwarp();
    if (last == p.docid) {
        if (lane == 0) record[1] = tf + 1;
    } else {
        Folded folded(gap, tf);
        u32 head = p.b.x, at = p.b.y, place = p.b.z & 0xffff, level = p.b.z >> 16;
        if (df == 1) {
            head = at = take(arena, COUNT_SLICES, 2, CHUNK_SLICES, ALONE_SLICES);
            if (at == NONE) return false;
            place = level = 0;
        }
        u32 room = slice_bytes(level) - 4;
        u32 fit = folded.bytes < room - place ? folded.bytes : room - place;
        u8* slice = arena.slices + (u64)at * 8;
        if (fit < folded.bytes) {
            u32 next = take(arena, COUNT_SLICES, slice_bytes(level + 1) / 8, CHUNK_SLICES, ALONE_SLICES);
            if (next == NONE) return false;
            if (lane == 0) *(u32*)(slice + room) = next;
            if (lane >= fit && lane < folded.bytes) arena.slices[(u64)next * 8 + lane - fit] = folded.byte(lane);
            at = next;
            level += 1;
        }
        if (lane < fit) slice[place + lane] = folded.byte(lane);
        place = fit < folded.bytes ? folded.bytes - fit : place + fit;
        if (lane == 0) {
            ((uint4*)record)[0] = make_uint4(p.docid, 1, p.docid - last - 1, df + 1);
            ((uint4*)record)[1] = make_uint4(head, at, level << 16 | place, p.b.w + folded.bytes);
        }
        if (lane < 2) arena.totals[POSTINGS + lane] += lane == 0 ? 1 : folded.bytes;
    }
    p.term = NONE;
    __syncwarp();
    return true;
}

// Steps 2 to 5 for one token. False when an arena is full.
__device__ __forceinline__ bool index(const Arena& arena, Cached& cached, const Stream& stream, const Token& token,
                                      u32 docid, u32& root, u32 collection, Pending& pending) {
    u32 lane = lane_of();
    u32 node = root, slot = 0;
    Node n = cached.load(arena, node, 0);
    if (__shfl_sync(ALL, n.head, 0) == 31) {
        u32 number = take(arena, COUNT_NODES, 1, CHUNK_NODES, CHUNK_NODES + 1);
        if (number == NONE) return false;
        // Its only child is full, and is split below.
        n.head = n.mark = lane == 0 ? 0 : NONE;
        n.child = lane == 0 ? root : NONE;
        n.cache = NONE;
        root = node = number;
        cached.keep(root, 0, n);
        if (lane == 0) arena.roots[collection] = root;
    }
    for (;;) {
        u32 record;
        u32 i = search(arena, stream, token, n, record);
        if (record != NONE) {
            // The posting before is appended while this one's record is on its way, unless they
            // are the same term's.
            if (!append(arena, pending)) return false;
            const uint4* words = (const uint4*)(arena.records + (u64)record * 8);
            pending.term = record;
            pending.docid = docid;
            pending.a = words[0];
            pending.b = words[1];
            return true;
        }
        u32 child = __shfl_sync(ALL, n.child, i);
        if (child == NONE) {
            u32 string;
            u32 number = take(arena, COUNT_RECORDS, 1, CHUNK_RECORDS, CHUNK_RECORDS + 1);
            if (number == NONE || !new_string(arena, stream, token, string)) return false;
            insert(n, i, token.cache, string, number);
            write(arena, node, n, false);
            cached.keep(node, slot, n);
            if (lane < 2) {
                ((uint4*)(arena.records + (u64)number * 8))[lane] =
                    lane == 0 ? make_uint4(docid, 1, docid, 1) : make_uint4(NONE, NONE, 0, 0);
            }
            if (lane < 2) arena.totals[TERMS + lane] += 1;
            __syncwarp();
            return true;
        }
        u32 child_slot = Cached::slot_of(child);
        Node below = cached.load(arena, child, child_slot);
        if (__shfl_sync(ALL, below.head, 0) == 31) {
            // The middle term is in this node now, which is searched again.
            if (!split(arena, cached, node, slot, n, i, child)) return false;
        } else {
            node = child;
            slot = child_slot;
            n = below;
        }
    }
}

// work     [items * 4]     collection, first byte of its stream / 16, bytes, first segment; by
//                          falling bytes
// segments [segments * 4]  first byte in `input`, first byte in `streams`, bytes, docid of the piece's
//                          first document counted from the run's first; by collection, then by docid
extern "C" __global__ void __launch_bounds__(256)
btree_regroup(const u8* __restrict__ input, const uint4* __restrict__ segments, u32 count,
              u8* __restrict__ streams, u64* counters) {
    u32 warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = gridDim.x * blockDim.x / 32;
    if (blockIdx.x == 0 && threadIdx.x == 0) counters[COUNT_NEXT] = 0;
    for (u32 s = warp; s < count; s += warps) {
        uint4 segment = segments[s];
        for (u32 i = lane_of(); i < segment.z; i += 32) {
            streams[(u64)segment.y + i] = input[(u64)segment.x + i];
        }
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS_PER_SM)
btree_insert(const u8* __restrict__ streams, const uint4* __restrict__ work, u32 items,
             const uint4* __restrict__ segments, u32* roots, u32* nodes, u64* strings, u32* records,
             u8* slices, u64* counters, u32* spares, u32 most_nodes, u32 most_strings, u32 most_records,
             u32 most_slices) {
    __shared__ uint4 windows[WARPS][64];
    __shared__ u32 kept[WARPS][SLOTS * 128];
    __shared__ Spare spare[WARPS][4];
    __shared__ u32 totals[WARPS][4];
    __shared__ u32 most[WARPS][4];
    u32 lane = lane_of(), warp = threadIdx.x / 32;
    Spare* own = (Spare*)spares + (blockIdx.x * WARPS + warp) * 4;
    if (lane < 4) {
        spare[warp][lane] = own[lane];
        totals[warp][lane] = 0;
        most[warp][lane] = lane == 0 ? most_nodes : lane == 1 ? most_strings : lane == 2 ? most_records : most_slices;
    }
    __syncwarp();
    Arena arena = {roots, nodes, strings, records, slices, counters, most[warp], spare[warp], totals[warp]};
    bool room = true;
    while (room) {
        u32 item = 0;
        if (lane == 0) item = (u32)atomicAdd(&counters[COUNT_NEXT], 1ull);
        item = __shfl_sync(ALL, item, 0);
        if (item >= items) break;
        uint4 job = work[item];
        u32 collection = job.x, base = job.y * 16, length = job.z, segment = job.w;
        Stream stream;
        stream.bytes = (const uint4*)(streams + base);
        stream.length = length;
        stream.window = (u32*)windows[warp];
        stream.begin();
        Cached cached;
        cached.slots = kept[warp];
        cached.tag = NONE;
        u32 root = roots[collection];
        if (root == NONE) {
            root = take(arena, COUNT_NODES, 1, CHUNK_NODES, CHUNK_NODES + 1);
            room = root != NONE;
            if (!room) break;
            Node empty = {lane == 0 ? 0 : NONE, lane == 0 ? 1 : NONE, NONE, NONE};
            write(arena, root, empty, true);
            cached.keep(root, 0, empty);
            if (lane == 0) roots[collection] = root;
        }
        Pending pending;
        pending.term = NONE;
        // Lane i has the i-th of the next 32 segments: where it ends, and its docid.
        u32 taken = 32, ends = 0, firsts = 0, end = 0, docid = 0;
        u32 at = 0;
        while (at < length) {
            stream.reach(at);
            if (at == end) {
                if (taken == 32) {
                    // Lanes beyond the last segment read that of another collection, or the padding.
                    uint4 s = segments[segment + lane];
                    ends = s.y + s.z - base;
                    firsts = s.w;
                    segment += 32;
                    taken = 0;
                }
                end = __shfl_sync(ALL, ends, taken);
                docid = __shfl_sync(ALL, firsts, taken);
                taken += 1;
            }
            u32 head = stream.four(at);
            docid += head & 255;
            if ((head & 255) == 255) {
                at += 1;
                continue;
            }
            Token token;
            token.length = head >> 8 & 255;
            token.at = at + 2;
            token.cache = swapped(stream.four(token.at));
            if (token.length < 4) token.cache &= ~(ALL >> (8 * token.length));
            room = index(arena, cached, stream, token, docid, root, collection, pending);
            if (!room) break;
            at = token.at + token.length;
        }
        room = room && append(arena, pending);
    }
    __syncwarp();
    if (lane < 4) own[lane] = spare[warp][lane];
    if (lane < 3) atomicAdd(&counters[COUNT_TERMS + lane], (u64)totals[warp][lane]);
}

// A tree deeper than this has more terms than there are numbers.
#define DEPTH 12

// Goes through the terms of a tree in order and hands them to `visit` in groups of neighbours in a
// node: the node, the first and the end.
template <typename Visit>
__device__ __forceinline__ void walk(const u32* nodes, u32 root, u32 (*path)[2], Visit& visit) {
    u32 lane = lane_of();
    int depth = 0;
    u32 down = root;
    while (down != NONE || depth > 0) {
        u32 at = down, i = 0;
        if (down == NONE) {
            depth -= 1;
            at = path[depth][0];
            i = path[depth][1];
            __syncwarp();
        }
        const u32* words = nodes + (u64)at * 128 + lane;
        Node n = {words[0], words[32], words[64], words[96]};
        u32 count = __shfl_sync(ALL, n.head, 0);
        if (__shfl_sync(ALL, n.mark, 0) != 0) {
            visit(n, 0, count);
            down = NONE;
            continue;
        }
        if (down == NONE) {
            visit(n, i, i + 1);
            i += 1;
        }
        // Behind the last child nothing is left of this node.
        if (i < count) {
            if (lane == 0) {
                path[depth][0] = at;
                path[depth][1] = i;
            }
            __syncwarp();
            depth += 1;
        }
        down = __shfl_sync(ALL, n.child, i);
    }
}

// What lane i knows of term i of a node.
struct Term {
    bool here;
    u32 cached;
    u32 suffix;
    u32 string;
    uint4 a;
    uint4 b;

    __device__ __forceinline__ Term(const Node& n, u32 from, u32 to, const u64* strings, const u32* records) {
        u32 record = __shfl_down_sync(ALL, n.mark, 1);
        string = __shfl_down_sync(ALL, n.head, 1);
        here = lane_of() >= from && lane_of() < to;
        cached = suffix = 0;
        a = b = make_uint4(0, 1, 0, 1);
        if (here) {
            const uint4* words = (const uint4*)(records + (u64)record * 8);
            a = words[0];
            b = words[1];
            // The cache is padded with zeros; terms hold none.
            cached = n.cache == 0 ? 0 : 4 - (__ffs(n.cache) - 1) / 8;
            suffix = cached + (string == NONE ? 0 : (u32)(strings[string] >> 56));
        }
    }

    // Bytes of all postings but the open one.
    __device__ __forceinline__ u32 closed() const { return here ? b.w : 0; }
};

struct Measure {
    const u64* strings;
    const u32* records;
    u64 terms, suffix_bytes, list_bytes;

    __device__ __forceinline__ void operator()(const Node& n, u32 from, u32 to) {
        Term term(n, from, to, strings, records);
        if (term.here) {
            terms += 1;
            suffix_bytes += term.suffix;
            list_bytes += term.closed() + Folded(term.a.z, term.a.y).bytes;
        }
    }
};

// sums [count * 3]: of each collection from `first` on, its terms, bytes of suffixes, bytes of lists.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
btree_measure(const u32* __restrict__ roots, const u32* __restrict__ nodes, const u64* __restrict__ strings,
              const u32* __restrict__ records, u32 first, u32 count, u64* sums) {
    __shared__ u32 paths[WARPS][DEPTH][2];
    u32 warp = threadIdx.x / 32;
    for (u32 c = blockIdx.x * WARPS + warp; c < count; c += gridDim.x * WARPS) {
        Measure measure = {strings, records, 0, 0, 0};
        u32 root = roots[first + c];
        if (root != NONE) walk(nodes, root, paths[warp], measure);
        for (int step = 16; step > 0; step /= 2) {
            measure.terms += __shfl_down_sync(ALL, measure.terms, step);
            measure.suffix_bytes += __shfl_down_sync(ALL, measure.suffix_bytes, step);
            measure.list_bytes += __shfl_down_sync(ALL, measure.list_bytes, step);
        }
        if (lane_of() == 0) {
            sums[(u64)c * 3] = measure.terms;
            sums[(u64)c * 3 + 1] = measure.suffix_bytes;
            sums[(u64)c * 3 + 2] = measure.list_bytes;
        }
        __syncwarp();
    }
}

// The sum over the lanes below.
__device__ __forceinline__ u32 before(u32 value) {
    u32 sum = value;
    for (int step = 1; step < 32; step *= 2) {
        u32 other = __shfl_up_sync(ALL, sum, step);
        if (lane_of() >= (u32)step) sum += other;
    }
    return sum - value;
}

// Lists with more closed bytes than this are copied by the whole warp.
#define LONG_LIST 64

struct Collect {
    const u64* strings;
    const u32* records;
    const u8* slices;
    u64 term, suffix_at, list_at;
    u8* lengths;
    u32* dfs;
    u32* lasts;
    u32* list_bytes;
    u8* suffixes;
    u8* lists;

    // Copies `bytes` bytes from slices to `to`, a lane every `lanes` bytes from `lane` on.
    __device__ __forceinline__ void copy(u32 slice, u32 bytes, u8* to, u32 lane, u32 lanes) const {
        for (u32 level = 0; bytes > 0; level++) {
            u32 room = slice_bytes(level) - 4;
            const u8* from = slices + (u64)slice * 8;
            u32 here = bytes < room ? bytes : room;
            for (u32 i = lane; i < here; i += lanes) to[i] = from[i];
            to += here;
            bytes -= here;
            if (bytes > 0) slice = *(const u32*)(from + room);
        }
    }

    __device__ __forceinline__ void operator()(const Node& n, u32 from, u32 to) {
        Term own(n, from, to, strings, records);
        u32 lane = lane_of();
        Folded open(own.a.z, own.a.y);
        u32 closed = own.closed(), bytes = own.here ? closed + open.bytes : 0;
        u64 suffix = suffix_at + before(own.suffix), list = list_at + before(bytes);
        if (own.here) {
            u64 t = term + (lane - from);
            lengths[t] = (u8)own.suffix;
            dfs[t] = own.a.w;
            lasts[t] = own.a.x;
            list_bytes[t] = bytes;
            for (u32 i = 0; i < own.cached; i++) suffixes[suffix + i] = (u8)(n.cache >> (24 - 8 * i));
            for (u32 i = own.cached; i < own.suffix; i++) {
                // The length byte stands before the fifth one of the suffix.
                u32 place = i - own.cached + 1;
                suffixes[suffix + i] = (u8)(strings[own.string + place / 8] >> (56 - 8 * (place % 8)));
            }
            for (u32 i = 0; i < open.bytes; i++) lists[list + closed + i] = open.byte(i);
            if (closed <= LONG_LIST) copy(own.b.x, closed, lists + list, 0, 1);
        }
        u32 longs = __ballot_sync(ALL, closed > LONG_LIST);
        while (longs != 0) {
            u32 source = __ffs(longs) - 1;
            longs &= longs - 1;
            u32 head = __shfl_sync(ALL, own.b.x, source);
            u32 many = __shfl_sync(ALL, closed, source);
            u64 place = __shfl_sync(ALL, list, source);
            copy(head, many, lists + place, lane, 32);
        }
        __syncwarp();
        term += to - from;
        suffix_at = __shfl_sync(ALL, suffix + own.suffix, 31);
        list_at = __shfl_sync(ALL, list + bytes, 31);
    }
};

// starts [count * 3]: of each collection from `first` on, where its terms, its suffixes and its lists
// begin in what is written.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
btree_collect(const u32* __restrict__ roots, const u32* __restrict__ nodes, const u64* __restrict__ strings,
              const u32* __restrict__ records, const u8* __restrict__ slices, u32 first, u32 count,
              const u64* __restrict__ starts, u8* lengths, u32* dfs, u32* lasts, u32* list_bytes,
              u8* suffixes, u8* lists) {
    __shared__ u32 paths[WARPS][DEPTH][2];
    u32 warp = threadIdx.x / 32;
    for (u32 c = blockIdx.x * WARPS + warp; c < count; c += gridDim.x * WARPS) {
        u32 root = roots[first + c];
        if (root == NONE) continue;
        Collect collect = {strings, records, slices, starts[(u64)c * 3], starts[(u64)c * 3 + 1],
                           starts[(u64)c * 3 + 2], lengths, dfs, lasts, list_bytes, suffixes, lists};
        walk(nodes, root, paths[warp], collect);
        __syncwarp();
    }
}
