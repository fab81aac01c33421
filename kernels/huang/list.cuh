// Layout of postings lists of `newpfd` with blocks of 64 in the memory of a device, and the cursor
// by which a thread reads one.
//
// Blocks and tails lie as on disk (docs/index-format.md, Postings); src/gpu/huang/list.rs puts a
// directory before them. From a list's place, each array from a multiple of 16 on:
//   last      [blocks] u32       docid of the last posting of each block, a tail being a block
//   records   [blocks] uint4     x: docid before the block; y: its place, in words from the bytes
//                                on; z: the head of the gaps, 8 bits, that of the tfs, 8 bits, and
//                                the bytes of the gaps; of a tail TAIL, 0 and its postings; w: f32,
//                                no posting of the block has a greater tf / (tf + norm)
//   bytes     blocks, and tails from a multiple of 4 on
//
// The words of a cursor, one for each thread and list, lie blockDim.x apart in shared memory, so
// that neighbouring threads use different banks. A cursor decodes nothing ahead, so that no thread
// needs room for a block: it reads gap after gap, and term frequencies of scored postings.

#define BLOCK 64
#define TAIL 255u
#define EXCEPTIONS 64u

// A term of a query; src/gpu/huang/batch.rs.
struct Term {
    u64 place;         // of its list, in bytes
    u32 blocks;
    u32 travels;       // if the list came with the batch, and is not in the cache
    float weight;
    float most;        // upper bound of what a posting of the list adds
    float per_bound;   // times w of a block: upper bound of what a posting of it adds
    u32 spare;
};

struct List {
    const u32* last;
    const uint4* records;
    const u8* bytes;
    u32 blocks;
};

__device__ __forceinline__ List list_at(const u8* cached, const u8* travelling, const Term& term) {
    List list;
    const u8* at = (term.travels ? travelling : cached) + term.place;
    list.last = (const u32*)at;
    list.records = (const uint4*)(at + padded(4 * (u64)term.blocks));
    list.bytes = (const u8*)(list.records + term.blocks);
    list.blocks = term.blocks;
    return list;
}

// The exceptions of a column of a block: a bit for each value, and where their bits above the slots
// begin, from the first byte of the block.
struct Exceptions {
    u64 map;
    u32 low_width;
    u32 lows;
    u32 unary;
};

// `at`: the byte behind the slots.
__device__ __forceinline__ Exceptions exceptions_at(const u8* block, u32 at) {
    Exceptions found;
    u32 count = block[at];
    found.low_width = block[at + 1];
    at += 2;
    u64 places = (u64)word_at(block, at + 4) << 32 | word_at(block, at);
    if (count < BLOCK / 8) {
        found.map = 0;
#pragma unroll 1
        for (u32 n = 0; n < count; n++) found.map |= 1ull << (places >> 8 * n & 63);
        at += count;
    } else {
        found.map = places;
        at += BLOCK / 8;
    }
    found.lows = 8 * at;
    found.unary = 8 * (at + (count * found.low_width + 7) / 8);
    return found;
}

// The ones up to the next zero; `bit` goes on behind that.
__device__ __forceinline__ u32 ones_at(const u8* block, u32& bit) {
    u32 ones = find_zero(block, bit, 0);
    bit += ones + 1;
    return ones;
}

__device__ __forceinline__ u32 above_slot(const u8* block, u32 quotient, u32 lows, u32 low_width, u32 n, u32 width) {
    u32 low = bits_at(block, lows + n * low_width, low_width);
    return shifted((shifted(quotient, low_width) | low) + 1, width);
}

// Seven bits a byte, low bits first; `at` goes on.
__device__ __forceinline__ u64 vbyte_at(const u8* bytes, u32& at) {
    u64 value = 0;
#pragma unroll 1
    for (u32 shift = 0; shift < 64; shift += 7) {
        u32 byte = bytes[at++];
        value |= (u64)(byte & 127) << shift;
        if (byte < 128) break;
    }
    return value;
}

struct Cursor {
    u32 docid;         // of the posting that was read last; NONE behind the list
    u32 block;
    u32 place;         // of the block, in words; of a tail, the byte of the next posting
    u32 count;         // postings of the block
    u32 read;          // of which this many were read
    u32 width;         // of a slot
    u32 low_width;     // of overflows
    u32 passed;        // exceptions that were read
    u64 map;           // exceptions; of a tail, the term frequency of the posting
    u32 lows;          // bits of the block
    u32 unary;         // of the next exception
};

// Words of a cursor, and of what BMW notes of a list: the block that it looked at last.
#define CURSOR_WORDS 8
#define SHALLOW 7

// The words of the cursor of list `t` of this thread.
__device__ __forceinline__ u32* words_of(u32* room, u32 t) { return room + t * CURSOR_WORDS * blockDim.x + threadIdx.x; }

__device__ __forceinline__ u32 docid_of(u32* room, u32 t) { return *words_of(room, t); }

__device__ __forceinline__ Cursor load_cursor(const u32* words) {
    u32 by = blockDim.x, step = words[3 * by], over = words[6 * by];
    Cursor cursor;
    cursor.docid = words[0];
    cursor.block = words[by];
    cursor.place = words[2 * by];
    cursor.count = step & 127;
    cursor.read = step >> 7 & 127;
    cursor.width = step >> 14 & 63;
    cursor.low_width = step >> 20 & 63;
    cursor.passed = step >> 26;
    cursor.map = (u64)words[5 * by] << 32 | words[4 * by];
    cursor.lows = over & 0xffff;
    cursor.unary = over >> 16;
    return cursor;
}

__device__ __forceinline__ void store_cursor(u32* words, const Cursor& cursor) {
    u32 by = blockDim.x;
    words[0] = cursor.docid;
    words[by] = cursor.block;
    words[2 * by] = cursor.place;
    words[3 * by] = cursor.count | cursor.read << 7 | cursor.width << 14 | cursor.low_width << 20 | cursor.passed << 26;
    words[4 * by] = (u32)cursor.map;
    words[5 * by] = (u32)(cursor.map >> 32);
    words[6 * by] = cursor.lows | cursor.unary << 16;
}

// Stands before the first posting of a block.
__device__ __forceinline__ void open_block(const List& list, Cursor& cursor, u32 block) {
    uint4 record = list.records[block];
    u32 head = record.z & 255;
    cursor.docid = record.x;
    cursor.block = block;
    cursor.place = record.y;
    cursor.read = cursor.width = cursor.low_width = cursor.passed = cursor.lows = cursor.unary = 0;
    cursor.map = 0;
    if (head == TAIL) {
        cursor.count = record.z >> 16;
        cursor.place *= 4;
        return;
    }
    cursor.count = BLOCK;
    cursor.width = head % EXCEPTIONS;
    if (head & EXCEPTIONS) {
        Exceptions found = exceptions_at(list.bytes + 4 * (u64)cursor.place, BLOCK / 8 * cursor.width);
        cursor.map = found.map;
        cursor.low_width = found.low_width;
        cursor.lows = found.lows;
        cursor.unary = found.unary;
    }
}

__device__ __forceinline__ bool is_tail(const Cursor& cursor) { return cursor.count < BLOCK; }

// Reads the next posting of the block; there must be one.
__device__ __forceinline__ void read_next(const List& list, Cursor& cursor) {
    u32 i = cursor.read++;
    if (is_tail(cursor)) {
        u64 gap = vbyte_at(list.bytes, cursor.place);
        cursor.docid += (u32)(gap >> 1) + 1;
        cursor.map = gap & 1 ? vbyte_at(list.bytes, cursor.place) + 2 : 1;
        return;
    }
    const u8* block = list.bytes + 4 * (u64)cursor.place;
    u32 gap = bits_at(block, i * cursor.width, cursor.width);
    if (cursor.map >> i & 1) {
        u32 quotient = ones_at(block, cursor.unary);
        gap |= above_slot(block, quotient, cursor.lows, cursor.low_width, cursor.passed++, cursor.width);
    }
    cursor.docid += gap + 1;
}

// The term frequency of the posting that was read last.
__device__ __forceinline__ u32 tf_of(const List& list, const Cursor& cursor) {
    if (is_tail(cursor)) return (u32)cursor.map;
    const u8* block = list.bytes + 4 * (u64)cursor.place;
    u32 line = list.records[cursor.block].z, head = line >> 8 & 255, begin = line >> 16;
    u32 width = head % EXCEPTIONS, i = cursor.read - 1;
    u32 value = bits_at(block, 8 * begin + i * width, width);
    if (head & EXCEPTIONS) {
        Exceptions found = exceptions_at(block, begin + BLOCK / 8 * width);
        if (found.map >> i & 1) {
            u32 n = (u32)__popcll(found.map & ((1ull << i) - 1));
            if (n > 0) found.unary += find_zero(block, found.unary, n - 1) + 1;
            u32 quotient = ones_at(block, found.unary);
            value |= above_slot(block, quotient, found.lows, found.low_width, n, width);
        }
    }
    return value + 1;
}

// The first block from `block` on whose last docid is not below `docid`, or list.blocks. Steps
// double, since that is mostly near.
__device__ __forceinline__ u32 find_block(const List& list, u32 block, u32 docid) {
    u32 step = 1;
#pragma unroll 1
    while (block + step <= list.blocks && list.last[block + step - 1] < docid) {
        block += step;
        step *= 2;
    }
    u32 high = block + step - 1;
    return find(list.last, block, high < list.blocks ? high : list.blocks, docid);
}

// Goes on to the first posting from `docid` on, not before the cursor; NONE if not below `end`.
__device__ __forceinline__ void go_to(const List& list, Cursor& cursor, u32 docid, u32 end) {
    bool is_here = false, ends = cursor.read == cursor.count;
    for (;;) {
        if (ends) {
            u32 block = find_block(list, cursor.block + 1, docid);
            if (block == list.blocks) {
                cursor.docid = NONE;
                cursor.block = block;
                return;
            }
            open_block(list, cursor, block);
            is_here = true;
        }
        read_next(list, cursor);
        if (cursor.docid >= docid) break;
        // Asked once: whether the block has no such posting.
        ends = !is_here && list.last[cursor.block] < docid;
        is_here = true;
    }
    if (cursor.docid >= end) cursor.docid = NONE;
}

__device__ __forceinline__ Cursor before_all() {
    Cursor cursor = {};
    cursor.docid = cursor.block = NONE;
    return cursor;
}
