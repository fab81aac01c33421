// Reads the names and texts of lines of JSON. All lines of a piece have the same bytes around some
// values; src/dictionary/device/lines.rs says why nothing else has to be looked at. A piece with a
// line of another shape is odd: the host reads it. raw [bytes] is whole pieces, each of which ends
// with a line feed, filled up with spaces to whole tiles.

// What stands around the values of a line, and their kinds: words of
// src/dictionary/device/lines.rs.
struct Shape {
    u32 values, is_named, first_text, last_text;
    // VALUE_NAME, VALUE_TEXT or neither, and VALUE_NUMBER.
    u32 kinds[MOST_VALUES];
    // Where the bytes before each value, and behind the last, end in `around`.
    u32 ends[MOST_VALUES + 1];
    u8 around[MOST_AROUND];
};

// Gives a multiprocessor eight blocks of the kernels that walk over lines, with 32 registers a
// thread. With 42 they take a third longer: they wait for bytes.
#define LINE_BOUNDS __launch_bounds__(256, 8)

// Which of 16 bytes are line feeds, a bit each. `at` is a multiple of 16.
__device__ __forceinline__ u32 feeds_of(const u8* __restrict__ raw, u32 at) {
    uint4 bytes = *(const uint4*)(raw + at);
    u32 words[4] = {bytes.x, bytes.y, bytes.z, bytes.w}, feeds = 0;
    for (u32 i = 0; i < 16; i++) feeds |= (u32)((words[i / 4] >> 8 * (i % 4) & 255) == '\n') << i;
    return feeds;
}

// tiles [bytes / 4096]: lines that end in each tile.
extern "C" __global__ void invert_count_lines(const u8* __restrict__ raw, u32* tiles) {
    SHARED(BlockScan, shared);
    u32 at = (blockIdx.x * blockDim.x + threadIdx.x) * 16, total;
    block_scan(shared, __popc(feeds_of(raw, at)), total);
    if (threadIdx.x == 0) tiles[blockIdx.x] = total;
}

// line_ends [lines]: where each ends, behind its line feed, by where those of each tile begin.
extern "C" __global__ void invert_end_lines(
    const u8* __restrict__ raw, const u32* __restrict__ tiles, u32* line_ends) {
    SHARED(BlockScan, shared);
    u32 at = (blockIdx.x * blockDim.x + threadIdx.x) * 16, total, feeds = feeds_of(raw, at);
    u32 place = tiles[blockIdx.x] + block_scan(shared, __popc(feeds), total);
    for (; feeds != 0; feeds &= feeds - 1) line_ends[place++] = at + (u32)__ffs((int)feeds);
}

// The number of the digits of a \u at `at`, or NONE; reads nothing behind the first wrong byte.
__device__ __forceinline__ u32 unit_at(const u8* __restrict__ raw, u32 at) {
    if (raw[at] != '\\' || raw[at + 1] != 'u') return NONE;
    u32 unit = 0;
    for (u32 i = 2; i < 6; i++) {
        u32 byte = raw[at + i], letter = (byte | 0x20) - 'a';
        if (byte - '0' >= 10u && letter >= 6u) return NONE;
        unit = unit << 4 | (byte - '0' < 10u ? byte - '0' : letter + 10);
    }
    return unit;
}

__device__ __forceinline__ bool is_high(u32 unit) { return unit >> 10 == 0xd800 >> 10; }
__device__ __forceinline__ bool is_low(u32 unit) { return unit >> 10 == 0xdc00 >> 10; }

// What a backslash and a letter stand for, or 0.
__device__ __forceinline__ u32 simple_escape(u32 letter) {
    switch (letter) {
    case '"': case '\\': case '/': return letter;
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return 0;
    }
}

// The four bytes at `at`; reads words with a byte before `end`, and line feeds behind these.
__device__ __forceinline__ u32 four_at(const u8* __restrict__ raw, u32 at, u32 end) {
    const u32* words = (const u32*)raw;
    const u32 feeds = 0x0a0a0a0a;
    u32 shift = 8 * (at & 3), first = at & ~3u;
    u32 low = first < end ? words[first / 4] : feeds, high = shift != 0 && first + 4 < end ? words[first / 4 + 1] : feeds;
    // Without a shift nothing of the higher one is left.
    return low >> shift | high << 1 << (31 - shift);
}

// The highest bit of each byte that is `byte`; it may be set for others above the first such one.
__device__ __forceinline__ u32 bytes_that_are(u32 word, u32 byte) {
    u32 others = word ^ byte * 0x01010101;
    return (others - 0x01010101) & ~others & 0x80808080;
}

// What 32 bytes of a text stand for, a lane each.
struct Unfolded {
    // The bytes that a lane's byte stands for, none if it belongs to an escape that began before
    // it; and their value: a byte, or a character of several.
    u32 count, code;
    // Which lanes' counts have each of the three bits.
    u32 counts[3];

    __device__ __forceinline__ u32 sum(u32 lanes) const {
        return __popc(counts[0] & lanes) + 2 * __popc(counts[1] & lanes) + 4 * __popc(counts[2] & lanes);
    }

    // What the escape at `here` stands for; false if it is none. `begun`: where others began in the
    // last 64 bytes.
    __device__ __forceinline__ bool unfold(const u8* __restrict__ raw, u32 here, u64 begun, bool& is_long) {
        code = simple_escape(raw[here + 1]);
        count = 1;
        if (code != 0) return true;
        u32 unit = unit_at(raw, here);
        if (unit == NONE) return false;
        is_long = true;
        code = unit;
        count = unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3;
        if (is_high(unit)) {
            u32 low = unit_at(raw, here + 6);
            bool has_low = low != NONE && is_low(low);
            code = has_low ? 0x10000 + ((unit & 0x3ff) << 10 | (low & 0x3ff)) : 0xfffd;
            count = has_low ? 4 : 3;
        } else if (is_low(unit)) {
            bool is_behind = begun >> (32 + lane_of() - 6) & 1;
            u32 high = is_behind ? unit_at(raw, here - 6) : NONE;
            code = 0xfffd;
            count = high != NONE && is_high(high) ? 0 : 3;
        }
        return true;
    }
};

// A warp walks over the text that begins at `at` in a line that ends at `line_end`. `sink` takes up
// to 128 bytes that stand for themselves, or 32 bytes with escapes. Returns where the text ends: at
// its quote, or where it cannot go on.
template <class Sink>
__device__ __forceinline__ u32 walk(const u8* __restrict__ raw, u32 at, u32 line_end, Sink& sink) {
    u32 lane = lane_of();
    // Where escapes begin: in the 32 bytes before the last ones (low half), and in the last ones.
    u64 begun = 0;
    // Digits, among the next bytes, of an escape that began before.
    u32 digits = 0;
    while (true) {
        if (begun >> 63 == 0 && digits == 0) {
            u32 word = four_at(raw, at + 4 * lane, line_end);
            u32 stops = bytes_that_are(word, '"') | bytes_that_are(word, '\\') | bytes_that_are(word, '\n');
            u32 lanes = __ballot_sync(ALL, stops != 0), bytes = 128;
            if (lanes != 0) {
                u32 first = (u32)__ffs((int)lanes) - 1;
                bytes = __shfl_sync(ALL, 4 * lane + ((u32)__ffs((int)stops) - 1) / 8, first);
            }
            sink.plain(at, bytes);
            at += bytes;
            if (lanes == 0) continue;
            if (raw[at] != '\\') return at;
            if (bytes > 0) begun = 0;
        }
        u32 here = at + lane, byte = here < line_end ? raw[here] : '\n';
        u32 slashes = __ballot_sync(ALL, byte == '\\'), starts = 0, escaped = (u32)(begun >> 63);
        for (u32 rest = slashes & ~escaped; rest != 0;) {
            u32 lowest = rest & (0 - rest);
            starts |= lowest;
            escaped |= lowest << 1;
            rest &= ~(lowest | lowest << 1);
        }
        u32 ends = __ballot_sync(ALL, byte == '\n' || (byte == '"' && !(escaped >> lane & 1)));
        u32 inside = ends != 0 ? (ends & (0 - ends)) - 1 : ALL;
        starts &= inside;
        begun = begun >> 32 | (u64)starts << 32;
        bool is_long = false, is_right = true;
        Unfolded unfolded = {0, byte, {0, 0, 0}};
        if (starts >> lane & 1) is_right = unfolded.unfold(raw, here, begun, is_long);
        u64 long_ones = __ballot_sync(ALL, is_long);
        long_ones = long_ones << 2 | long_ones << 3 | long_ones << 4 | long_ones << 5;
        u32 others = escaped | digits | (u32)long_ones;
        digits = (u32)(long_ones >> 32);
        if (!(starts >> lane & 1)) unfolded.count = (inside & ~others) >> lane & 1;
        for (u32 bit = 0; bit < 3; bit++) unfolded.counts[bit] = __ballot_sync(ALL, unfolded.count >> bit & 1);
        sink.unfolded(unfolded);
        // Behind a wrong escape nothing matters: the backslash is no quote.
        u32 last = ends | __ballot_sync(ALL, !is_right);
        if (last != 0) return at + (u32)__ffs((int)last) - 1;
        at += 32;
    }
}

struct CountText {
    u32 bytes;

    __device__ __forceinline__ void plain(u32, u32 count) { bytes += count; }
    __device__ __forceinline__ void unfolded(const Unfolded& here) { bytes += here.sum(ALL); }
};

// 1 to 4 bytes: one as it is, or a character of several in UTF-8.
__device__ __forceinline__ void put_character(u8* to, u32 code, u32 count) {
    if (count == 1) {
        to[0] = (u8)code;
        return;
    }
    for (u32 i = count - 1; i > 0; i--) {
        to[i] = (u8)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    to[0] = (u8)((0xf00u >> count & 0xf0) | code);
}

struct WriteText {
    const u8* raw;
    u8* text;
    u32 to;

    // Whole words where they go, and single bytes before and behind these.
    __device__ __forceinline__ void plain(u32 at, u32 count) {
        u32 lane = lane_of(), head = min((0 - to) & 3, count), words = (count - head) / 4, tail = (count - head) % 4;
        if (lane < head) text[to + lane] = raw[at + lane];
        u32 place = head + 4 * lane;
        if (lane < words) *(u32*)(text + to + place) = four_at(raw, at + place, at + count);
        if (lane < tail) text[to + count - tail + lane] = raw[at + count - tail + lane];
        to += count;
    }

    __device__ __forceinline__ void unfolded(const Unfolded& here) {
        if (here.count > 0) put_character(text + to + here.sum((1u << lane_of()) - 1), here.code, here.count);
        to += here.sum(ALL);
    }
};

// Whether these bytes stand at `at`; all lanes get the answer.
__device__ __forceinline__ bool stand_at(
    const u8* __restrict__ raw, u32 at, u32 line_end, const u8* __restrict__ bytes, u32 length) {
    bool differs = false;
    for (u32 i = lane_of(); i < length; i += 32) differs |= at + i >= line_end || raw[at + i] != bytes[i];
    return __ballot_sync(ALL, differs) == 0;
}

// Where a name in quotes that begins at `at` ends, or where it is too long.
__device__ __forceinline__ u32 end_of_name(const u8* __restrict__ raw, u32 at, u32 line_end) {
    for (u32 from = at; from - at <= LONGEST_NAME; from += 32) {
        u32 here = from + lane_of(), byte = here < line_end ? raw[here] : '\n';
        u32 all = __ballot_sync(ALL, byte == '"' || byte == '\\' || byte == '\n');
        if (all != 0) return from + (u32)__ffs((int)all) - 1;
    }
    return at + LONGEST_NAME + 1;
}

// Where a number that begins at `at` ends: a minus, digits, a point and digits. `at` if there is
// none, or too long a one.
__device__ __forceinline__ u32 end_of_number(const u8* __restrict__ raw, u32 at, u32 line_end) {
    u32 here = at + lane_of(), byte = here < line_end ? raw[here] : '\n';
    u32 minus = __ballot_sync(ALL, byte == '-'), points = __ballot_sync(ALL, byte == '.');
    u32 digits = __ballot_sync(ALL, byte - '0' < 10u), zeros = __ballot_sync(ALL, byte == '0');
    u32 others = ~(minus | points | digits);
    if (others == 0) return at;
    u32 length = (u32)__ffs((int)others) - 1, inside = (1u << length) - 1, first = minus & 1;
    minus &= inside;
    points &= inside;
    u32 point = points != 0 ? (u32)__ffs((int)points) - 1 : length, whole = point - first;
    bool is_number = length <= LONGEST_NUMBER && minus <= 1 && (points & (points - 1)) == 0 && point > first
        && (whole == 1 || !(zeros >> first & 1)) && point + 1 != length;
    return is_number ? at + length : at;
}

// Where the value at `at` ends, if the line is right. `text` takes a string that is no name.
template <class Sink>
__device__ __forceinline__ u32 end_of_value(const u8* __restrict__ raw, u32 at, u32 line_end, u32 kind, Sink& text) {
    if (kind & VALUE_NUMBER) return end_of_number(raw, at, line_end);
    if (kind & VALUE_NAME) return end_of_name(raw, at, line_end);
    return walk(raw, at, line_end, text);
}

// Of each line the host's LineEnds: texts, names [lines]: where its first text and its name begin
// in raw; name_lengths [lines], name_places [lines + 1]: the name's bytes; text_places [lines + 1]:
// the bytes that its texts stand for, each with one that separates it from the next. The last ones
// are 0. piece_starts [pieces]: the first line of each piece; piece_places [pieces + 1]: where each
// begins, and the end. odd_pieces [pieces]: not 0 if a line has another shape than shapes [pieces]
// says, or a document more than `longest` bytes; then what is said of its lines is of no use.
// are_alike: all shapes are the same. A warp a line.
extern "C" __global__ void LINE_BOUNDS invert_read_lines(
    const u8* __restrict__ raw, const u32* __restrict__ line_ends, u32 lines, const u32* __restrict__ piece_places, u32 pieces,
    const Shape* __restrict__ shapes, u32 are_alike, u32 longest, u32* odd_pieces, u32* piece_starts, u32* texts, u32* names,
    u8* name_lengths, u32* name_places, u32* text_places) {
    u32 line = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (line >= lines) return;
    u32 at = line > 0 ? line_ends[line - 1] : 0, line_end = line_ends[line], piece = part_of(piece_places, pieces, at);
    bool is_first = lane_of() == 0, is_regular = line_end - at - 1 <= longest;
    if (is_first && at == piece_places[piece]) piece_starts[piece] = line;
    const Shape& shape = shapes[are_alike ? 0 : piece];
    u32 passed = 0, bytes = 0;
    for (u32 value = 0; is_regular; value++) {
        u32 length = shape.ends[value] - passed;
        is_regular = stand_at(raw, at, line_end, shape.around + passed, length);
        at += length;
        passed += length;
        // The last bytes end with a line feed; a line has one, at its end.
        if (!is_regular || value == shape.values) break;
        u32 kind = shape.kinds[value];
        CountText count = {0};
        u32 end = end_of_value(raw, at, line_end, kind, count);
        if (kind & VALUE_NAME) {
            is_regular = end - at - 1 < LONGEST_NAME;
            if (is_first) {
                names[line] = at;
                name_lengths[line] = (u8)(end - at);
                name_places[line] = end - at;
            }
        }
        if (kind & VALUE_NUMBER) is_regular = is_regular && end > at;
        if (is_first && value == shape.first_text) texts[line] = at;
        if (kind & VALUE_TEXT) bytes += count.bytes + 1;
        at = end;
    }
    if (!is_first) return;
    if (!is_regular) {
        odd_pieces[piece] = 1;
        bytes = 0;
    }
    if (!is_regular || !shape.is_named) {
        name_lengths[line] = 0;
        names[line] = name_places[line] = 0;
    }
    text_places[line] = bytes;
    if (line == 0) name_places[lines] = text_places[lines] = 0;
}

// text: the texts of each line at its place, line feeds between them and a separator behind;
// all_names: its name. A warp a line.
extern "C" __global__ void LINE_BOUNDS invert_write_lines(
    const u8* __restrict__ raw, const u32* __restrict__ line_ends, u32 lines, const u32* __restrict__ piece_places, u32 pieces,
    const Shape* __restrict__ shapes, u32 are_alike, const u32* __restrict__ texts, const u32* __restrict__ names,
    const u32* __restrict__ name_places, const u32* __restrict__ text_places, u8* all_names, u8* text) {
    u32 line = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = lane_of();
    if (line >= lines) return;
    u32 at = texts[line], line_end = line_ends[line];
    u32 name = names[line], to = name_places[line], length = name_places[line + 1] - to;
    for (u32 i = lane; i < length; i += 32) all_names[to + i] = raw[name + i];
    const Shape& shape = shapes[are_alike ? 0 : part_of(piece_places, pieces, at)];
    WriteText write = {raw, text, text_places[line]};
    for (u32 value = shape.first_text;; value++) {
        u32 kind = shape.kinds[value];
        if (kind & VALUE_TEXT) {
            at = walk(raw, at, line_end, write);
            bool is_last = value == shape.last_text;
            if (lane == 0) text[write.to] = is_last ? ' ' : '\n';
            if (is_last) return;
            write.to++;
        } else {
            CountText others = {0};
            at = end_of_value(raw, at, line_end, kind, others);
        }
        at += shape.ends[value + 1] - shape.ends[value];
    }
}
