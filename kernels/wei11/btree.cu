// The dictionary of one run: a B-tree for each trie collection, grown by one warp a collection,
// then read out in the order of the lexicon.
//
// Paper: Wei and JaJa, "A fast algorithm for constructing inverted files on heterogeneous
// platforms" (IPDPS 2011), sections III.B and III.D.2. Twin: src/papers/wei11/btree/ (forest.rs,
// run.rs, walk.rs).
//
// Kernels, in the order of their use:
//   btree_regroup   lays the streams of a parsed block end to end, collection by collection
//   btree_insert    looks every token up, inserts terms, appends postings
//   btree_measure   counts what collections hold
//   btree_collect   writes terms and postings out
//
// Steps of btree_insert, by a warp that has taken a collection from the work list:
// 1. The stream comes in pieces of 512 bytes, coalesced, into a window of four in shared memory.
// 2. From the root down: a node of 512 bytes is four coalesced loads, a word of each line for each
//    lane. The root and SLOTS - 1 other nodes stay in shared memory. The child of the root that the
//    next token needs is asked for before this token is searched.
// 3. 31 caches are compared at once; a ballot and a count give the place. A single candidate is
//    believed: its string is asked for, and compared when the next token has been searched; if it
//    was another, the token is searched again before the next one has an effect. Where several
//    caches are equal, or the string is long, each of those lanes looks at its own string.
// 4. A full child is split before it is entered; terms, strings and children move by shuffles.
// 5. A term that was found: its record of 32 bytes is asked for, and used when the next term is
//    found, so that its latency is hidden. A new posting closes the one before, which goes to the
//    term's slices.
// Changed lines of a node are written through; a collection belongs to one warp for the whole
// launch, so no warp reads lines of another.
//
// The text stands behind those of common.cuh, btree_memory.cuh (the arrays) and btree_search.cuh.
//
// Launch geometry: btree_insert any number of blocks of 32 * WARPS threads, the others any. Results
// come in the order of the lexicon, whatever warp took what; places in the arenas differ.

// work     [items * 4]     collection, first byte of its stream / 16, bytes, first segment; by
//                          falling bytes
// segments [segments * 4]  first byte in `input`, first byte in `streams`, bytes, docid of the
//                          piece's first document counted from the run's first; by collection, then
//                          by docid
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

struct InsertShared {
    uint4 windows[WARPS][128];
    SHARED_GAP
    u32 kept[WARPS][SLOTS * 128];
    SHARED_GAP
    Spare spare[WARPS][4];
    SHARED_GAP
    u32 totals[WARPS][4];
    SHARED_GAP
    u32 most[WARPS][4];
};
SHARED_IS(InsertShared, INSERT_SHARED_BYTES);

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS_PER_SM)
btree_insert(const u8* __restrict__ streams, const uint4* __restrict__ work, u32 items,
             const uint4* __restrict__ segments, u32* roots, u32* nodes, u64* strings, u32* records,
             u8* slices, u64* counters, u32* spares, u32 most_nodes, u32 most_strings, u32 most_records,
             u32 most_slices) {
    SHARED(InsertShared, shared);
    u32 lane = lane_of(), warp = threadIdx.x / 32;
    Spare* spare = shared.spare[warp];
    u32* totals = shared.totals[warp];
    u32* most = shared.most[warp];
    Spare* own = (Spare*)spares + (blockIdx.x * WARPS + warp) * 4;
    if (lane < 4) {
        spare[lane] = own[lane];
        totals[lane] = 0;
        most[lane] = lane == 0 ? most_nodes : lane == 1 ? most_strings : lane == 2 ? most_records : most_slices;
    }
    __syncwarp();
    Arena arena = {roots, nodes, strings, records, slices, counters, most, spare, totals};
    bool room = true;
    while (room) {
        u32 item = 0;
        if (lane == 0) item = (u32)atomicAdd(&counters[COUNT_NEXT], 1ull);
        item = __shfl_sync(ALL, item, 0);
        if (item >= items) break;
#ifdef TRAP_AT
        // A fault that a test has asked for.
        if (item == TRAP_AT) __trap();
#endif
        uint4 job = work[item];
        u32 collection = job.x, base = job.y * 16, length = job.z, segment = job.w;
        Stream stream;
        stream.bytes = (const uint4*)(streams + base);
        stream.segments = segments + segment;
        stream.length = length;
        stream.base = base;
        stream.window = (u32*)shared.windows[warp];
        stream.begin();
        Cached cached;
        cached.slots = shared.kept[warp];
        cached.tag = cached.ahead_number = NONE;
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
        Token token, next;
        bool have = stream.next(token);
        while (room && (have || pending.is_wrong())) {
            bool exact = !have;
            if (exact) {
                // Behind the last token, which was taken for another.
                token = pending.token();
            } else {
                have = stream.next(next);
                if (have) cached.look(arena, root, next.cache);
            }
            room = index(arena, cached, stream, token, exact, root, collection, pending);
            token = next;
        }
        room = room && append(arena, pending);
    }
    __syncwarp();
    if (lane < 4) own[lane] = spare[lane];
    if (lane < 3) atomicAdd(&counters[COUNT_TERMS + lane], (u64)totals[lane]);
}

// A tree deeper than this has more terms than there are numbers.
#define DEPTH 12

// The path of each warp: a node, and which of its children.
struct WalkShared {
    u32 paths[WARPS][DEPTH][2];
};
SHARED_IS(WalkShared, WALK_SHARED_BYTES);

// Visits the terms of a tree in order, in groups of neighbours of a node: the node, first and end.
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

// sums [count * 3]: of each collection from `first` on: terms, bytes of suffixes, bytes of lists.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
btree_measure(const u32* __restrict__ roots, const u32* __restrict__ nodes, const u64* __restrict__ strings,
              const u32* __restrict__ records, u32 first, u32 count, u64* sums) {
    SHARED(WalkShared, shared);
    u32 warp = threadIdx.x / 32;
    for (u32 c = blockIdx.x * WARPS + warp; c < count; c += gridDim.x * WARPS) {
        Measure measure = {strings, records, 0, 0, 0};
        u32 root = roots[first + c];
        if (root != NONE) walk(nodes, root, shared.paths[warp], measure);
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
    return sums_of_warp(value) - value;
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

    // A lane copies a byte every `lanes` bytes from `lane` on.
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

// starts [count * 3]: of each collection from `first` on: where its terms, suffixes and lists go.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
btree_collect(const u32* __restrict__ roots, const u32* __restrict__ nodes, const u64* __restrict__ strings,
              const u32* __restrict__ records, const u8* __restrict__ slices, u32 first, u32 count,
              const u64* __restrict__ starts, u8* lengths, u32* dfs, u32* lasts, u32* list_bytes,
              u8* suffixes, u8* lists) {
    SHARED(WalkShared, shared);
    u32 warp = threadIdx.x / 32;
    for (u32 c = blockIdx.x * WARPS + warp; c < count; c += gridDim.x * WARPS) {
        u32 root = roots[first + c];
        if (root == NONE) continue;
        Collect collect = {strings, records, slices, starts[(u64)c * 3], starts[(u64)c * 3 + 1],
                           starts[(u64)c * 3 + 2], lengths, dfs, lasts, list_bytes, suffixes, lists};
        walk(nodes, root, shared.paths[warp], collect);
        __syncwarp();
    }
}
