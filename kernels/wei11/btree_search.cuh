// Steps of btree_insert: a warp finds a token in a tree, or inserts it, and appends its posting.

__device__ __forceinline__ u32 swapped(u32 x) { return __byte_perm(x, 0, 0x0123); }

// A token of a stream; `first` is the first word of its string, 0 if it needs none.
struct Token {
    u32 at;
    u32 length;
    u32 cache;
    u32 docid;
    u64 first;
    __device__ __forceinline__ u32 rest() const { return length > 4 ? length - 4 : 0; }
};

// Step 1: the stream of one collection. A token can be read until the one behind the next is read.
struct Stream {
    const uint4* bytes;
    const uint4* segments;
    u32* window;
    u32 length;
    u32 base;
    u32 loaded;
    u32 at;
    // Lane i has the i-th of 32 segments: where it ends, and its docid.
    u32 ends;
    u32 firsts;
    u32 taken;
    u32 end;
    u32 docid;

    __device__ __forceinline__ void begin() {
        loaded = at = end = 0;
        taken = 32;
    }

    __device__ __forceinline__ void load() {
        u32 place = loaded * 32 + lane_of();
        uint4 value = (u64)place * 16 < length ? __ldg(bytes + place) : make_uint4(0, 0, 0, 0);
        __syncwarp();
        ((uint4*)window)[place & 127] = value;
        __syncwarp();
        loaded += 1;
    }

    // Four bytes from `place` on, the first one lowest.
    __device__ __forceinline__ u32 four(u32 place) const {
        u32 word = place >> 2;
        return __funnelshift_r(window[word & 511], window[(word + 1) & 511], (place & 3) * 8);
    }

    // Word `k` of the string whose `rest` bytes begin at `place`.
    __device__ __forceinline__ u64 string_word(u32 place, u32 rest, u32 k) const {
        u32 skip = k == 0 ? 0 : 8 * k - 1;
        u64 word = (u64)swapped(four(place + skip)) << 32 | swapped(four(place + skip + 4));
        u32 have = rest - skip;
        if (have < 8) word &= ~(~0ull >> (8 * have));
        return k == 0 ? (u64)rest << 56 | word >> 8 : word;
    }

    __device__ __forceinline__ bool next(Token& token) {
        for (;;) {
            if (at >= length) return false;
            while (loaded < (at >> 9) + 2) load();
            if (at == end) {
                if (taken == 32) {
                    // Lanes beyond the last segment read another collection's, or the padding.
                    uint4 s = segments[lane_of()];
                    ends = s.y + s.z - base;
                    firsts = s.w;
                    segments += 32;
                    taken = 0;
                }
                end = __shfl_sync(ALL, ends, taken);
                docid = __shfl_sync(ALL, firsts, taken);
                taken += 1;
            }
            u32 head = four(at);
            docid += head & 255;
            at += 1;
            if ((head & 255) == 255) continue;
            token.docid = docid;
            token.length = head >> 8 & 255;
            token.at = at + 1;
            token.cache = swapped(four(token.at));
            if (token.length < 4) token.cache &= ~(ALL >> (8 * token.length));
            u32 rest = token.rest();
            token.first = rest > 0 ? string_word(token.at + 4, rest, 0) : 0;
            at = token.at + token.length;
            return true;
        }
    }
};

// Step 2: nodes in shared memory. Lane i knows the number of the node in slot i.
struct Cached {
    u32* slots;
    u32 tag;
    // A node that is on its way, for the token after.
    Node ahead;
    u32 ahead_number;

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
            n = fetched(arena, node);
            keep(node, slot, n);
        }
        return n;
    }

    __device__ __forceinline__ static Node fetched(const Arena& arena, u32 node) {
        const u32* words = arena.nodes + (u64)node * 128 + lane_of();
        Node n;
        n.cache = words[96];
        n.child = words[64];
        n.head = words[0];
        n.mark = words[32];
        return n;
    }

    // Keeps the node that was asked for, and asks for the child of the root that the token needs.
    __device__ __forceinline__ void look(const Arena& arena, u32 root, u32 cache) {
        if (ahead_number != NONE) keep(ahead_number, slot_of(ahead_number), ahead);
        ahead_number = NONE;
        if (__shfl_sync(ALL, tag, 0) != root) return;
        const u32* shared = place(0);
        u32 i = __popc(__ballot_sync(ALL, shared[96] < cache));
        u32 child = __shfl_sync(ALL, shared[64], i & 31);
        if (child == NONE || __shfl_sync(ALL, tag, slot_of(child)) == child) return;
        ahead = fetched(arena, child);
        ahead_number = child;
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

__device__ __forceinline__ void write(const Arena& arena, u32 node, const Node& n, bool children) {
    u32* words = arena.nodes + (u64)node * 128 + lane_of();
    words[0] = n.head;
    words[32] = n.mark;
    words[96] = n.cache;
    if (children) words[64] = n.child;
}

// Values from lane `from` on move up by one lane, and `value` takes the place.
__device__ __forceinline__ u32 moved(u32 own, u32 from, u32 value) {
    u32 lower = __shfl_up_sync(ALL, own, 1);
    u32 lane = lane_of();
    return lane < from ? own : lane == from ? value : lower;
}

__device__ __forceinline__ void insert(Node& n, u32 i, u32 cache, u32 string, u32 record) {
    u32 count = __shfl_sync(ALL, n.head, 0) + 1;
    n.cache = moved(n.cache, i, cache);
    n.head = moved(n.head, i + 1, string);
    n.mark = moved(n.mark, i + 1, record);
    if (lane_of() == 0) n.head = count;
}

// Step 4: splits the full child `child`, the `i`-th of `above`. False, with nothing changed, when
// there is no room for a node.
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

// Step 3: the place of a token in a node (the number of terms below it), and in `record` its record
// or NONE. A single candidate with a short string is believed, unless `exact`: `own` is the word of
// its string, to compare with the token's when it has come.
__device__ __forceinline__ u32 search(const Arena& arena, const Stream& stream, const Token& token, bool exact,
                                      const Node& n, u32& record, u64& own) {
    u32 equal = __ballot_sync(ALL, n.cache == token.cache);
    u32 below = __popc(__ballot_sync(ALL, n.cache < token.cache));
    u32 rest = token.rest();
    record = NONE;
    own = token.first;
    if (equal == 0) return below;
    if (rest <= 7 && (equal & (equal - 1)) == 0 && !exact) {
        u32 at = __ffs(equal);
        u32 string = __shfl_sync(ALL, n.head, at);
        u32 mark = __shfl_sync(ALL, n.mark, at);
        if (string == NONE) {
            if (rest == 0) record = mark;
            return rest == 0 ? below : below + 1;
        }
        if (rest > 0) {
            record = mark;
            own = arena.strings[string];
        }
        return below;
    }
    u32 string = __shfl_down_sync(ALL, n.head, 1);
    bool less = false, same = false;
    if (n.cache == token.cache) {
        if (string == NONE) {
            same = rest == 0;
            less = !same;
        } else if (rest > 0) {
            // Words of both strings, until they differ or one of them ends.
            u64 mine = arena.strings[string], other = token.first;
            u32 mine_rest = (u32)(mine >> 56);
            u32 words = ((mine_rest < rest ? mine_rest : rest) + 8) / 8;
            mine <<= 8;
            other <<= 8;
            for (u32 k = 1; mine == other && k < words; k++) {
                mine = arena.strings[string + k];
                other = stream.string_word(token.at + 4, rest, k);
            }
            less = mine < other || (mine == other && mine_rest < rest);
            same = mine == other && mine_rest == rest;
        }
    }
    __syncwarp();
    below += __popc(__ballot_sync(ALL, less));
    u32 at = __ballot_sync(ALL, same);
    if (at != 0) record = __shfl_sync(ALL, n.mark, __ffs(at) & 31);
    return below;
}

// The number of a new string, or NONE if the token needs none. False when the pool is full.
__device__ __forceinline__ bool new_string(const Arena& arena, const Stream& stream, const Token& token, u32& string) {
    string = NONE;
    u32 rest = token.rest();
    if (rest == 0) return true;
    u32 words = (1 + rest + 7) / 8, lane = lane_of();
    string = take(arena, COUNT_STRINGS, words, CHUNK_STRINGS, CHUNK_STRINGS + 1);
    if (string == NONE) return false;
    if (lane < words) {
        arena.strings[string + lane] = lane == 0 ? token.first : stream.string_word(token.at + 4, rest, lane);
    }
    return true;
}

// A posting that waits for its term's record, and for the word of its string: `own`.
struct Pending {
    u32 term;
    u32 docid;
    u32 cache;
    u64 first;
    u64 own;
    uint4 a;
    uint4 b;

    __device__ __forceinline__ bool is_wrong() const { return term != NONE && own != first; }

    // Forgets the posting and gives its token back. Its string has one word.
    __device__ __forceinline__ Token token() {
        term = NONE;
        return {0, 4 + (u32)(first >> 56), cache, docid, first};
    }
};

// Step 5: appends the posting. False, with nothing changed, when the arena of slices is full.
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
            // All slices from here on are alike, and their level stays below the place's bits.
            level = level < LAST_LEVEL ? level + 1 : LAST_LEVEL;
        }
        if (lane < fit) slice[place + lane] = folded.byte(lane);
        place = fit < folded.bytes ? folded.bytes - fit : place + fit;
        if (lane == 0) {
            ((uint4*)record)[0] = make_uint4(p.docid, 1, p.docid - last - 1, df + 1);
            ((uint4*)record)[1] = make_uint4(head, at, level << 16 | place, p.b.w + folded.bytes);
        }
        if (lane < 2) arena.totals[LISTED + lane] += lane == 0 ? 1 : folded.bytes;
    }
    p.term = NONE;
    __syncwarp();
    return true;
}

// Steps 2 to 5 for one token. False when an arena is full.
__device__ __forceinline__ bool index(const Arena& arena, Cached& cached, const Stream& stream, Token token,
                                      bool exact, u32& root, u32 collection, Pending& pending) {
    u32 lane = lane_of();
    Token later;
    bool again = false;
    for (;;) {
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
        u32 record, i;
        u64 own;
        for (;;) {
            i = search(arena, stream, token, exact, n, record, own);
            if (record != NONE) break;
            u32 child = __shfl_sync(ALL, n.child, i);
            if (child == NONE) break;
            u32 child_slot = Cached::slot_of(child);
            Node below = cached.load(arena, child, child_slot);
            if (__shfl_sync(ALL, below.head, 0) == 31) {
                // The middle term is in this node now, which is searched again.
                if (!split(arena, cached, node, slot, n, i, child)) return false;
                cached.ahead_number = NONE;
            } else {
                node = child;
                slot = child_slot;
                n = below;
            }
        }
        if (pending.is_wrong()) {
            // The token before goes first, and looks at all strings.
            later = token;
            again = true;
            token = pending.token();
            exact = true;
            continue;
        }
        if (record != NONE) {
            // The posting before is appended while this one's record is on its way.
            if (!append(arena, pending)) return false;
            const uint4* words = (const uint4*)(arena.records + (u64)record * 8);
            pending.term = record;
            pending.docid = token.docid;
            pending.cache = token.cache;
            pending.first = token.first;
            pending.own = own;
            pending.a = words[0];
            pending.b = words[1];
        } else {
            u32 string;
            u32 number = take(arena, COUNT_RECORDS, 1, CHUNK_RECORDS, CHUNK_RECORDS + 1);
            if (number == NONE || !new_string(arena, stream, token, string)) return false;
            insert(n, i, token.cache, string, number);
            write(arena, node, n, false);
            cached.keep(node, slot, n);
            cached.ahead_number = NONE;
            if (lane < 2) {
                ((uint4*)(arena.records + (u64)number * 8))[lane] =
                    lane == 0 ? make_uint4(token.docid, 1, token.docid, 1) : make_uint4(NONE, NONE, 0, 0);
                arena.totals[TERMS + lane] += 1;
            }
            __syncwarp();
        }
        if (!again) return true;
        token = later;
        exact = again = false;
    }
}

