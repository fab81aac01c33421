// Where are the forms of a text, and which are equal? A form is a stretch of letters and digits, or a part of one that has the
// words of its own whatever stands around it: src/gpu/invert/classes.rs says which, and has the same walk. What it means is
// the host's business. ASCII letters count as lower case.

// Classes of characters.
#define WORD 0
#define SEPARATOR 1
#define PAIRED 2
#define JOINED 3
// Nothing of a form was read yet, and all of it.
#define NOTHING 4
#define ALL_READ 5

__device__ __forceinline__ bool is_word(u32 byte) { return (byte | 0x20) - 'a' < 26u || byte - '0' < 10u; }

__device__ __forceinline__ u32 lower(u32 byte) { return byte - 'A' < 26u ? byte | 0x20 : byte; }

// The class of the character that begins at `at`, and its bytes. A byte that is of none is one that separates, and so is what ends
// a text: nothing behind that is read. classes: bytes that say in which page a character is, then pages of 256 characters.
__device__ __forceinline__ u32 class_at(
    const u8* __restrict__ text, u32 at, const u32* __restrict__ classes, u32& bytes) {
    u32 first = text[at];
    bytes = 1;
    if (first < 0x80) return is_word(first) ? WORD : SEPARATOR;
    if (first < 0xc2 || first > 0xf4) return SEPARATOR;
    u32 more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3, code = first & 0x3f >> more;
    for (u32 i = 1; i <= more; i++) {
        u32 byte = text[at + i];
        if ((byte & 0xc0) != 0x80) return SEPARATOR;
        code = code << 6 | (byte & 0x3f);
    }
    // An overlong one, half of a surrogate pair, and one behind the last.
    if (more == 2 && (code < 0x800 || code >> 11 == 0x1b)) return SEPARATOR;
    if (more == 3 && (code < 0x10000 || code > 0x10ffff)) return SEPARATOR;
    bytes = 1 + more;
    const u32* page = classes + CLASS_PAGES / 4 + 16 * ((const u8*)classes)[code >> 8];
    return page[(code & 255) / 16] >> 2 * (code & 15) & 3;
}

// Where the character begins that has the byte at `at`, which may be a byte of none.
__device__ __forceinline__ u32 character_of(const u8* __restrict__ text, u32 at, const u32* __restrict__ classes) {
    for (u32 from = at; (text[from] & 0xc0) == 0x80 && from > 0 && at - from < 3;) {
        u32 bytes;
        class_at(text, --from, classes, bytes);
        if (from + bytes > at) return from;
    }
    return at;
}

// Whether a form begins with a character of class `here`, behind one of class `before`.
__device__ __forceinline__ bool begins(u32 before, u32 here) {
    return here == WORD ? before == SEPARATOR || before == PAIRED : here == JOINED && before == SEPARATOR;
}

// At which of 16 bytes a form begins, a bit each. `at` is a multiple of 16.
__device__ __forceinline__ u32 form_starts(const u8* __restrict__ text, u32 at, const u32* __restrict__ classes) {
    uint4 bytes = *(const uint4*)(text + at);
    u32 words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
    u32 mask = 0, last = at > 0 ? text[at - 1] : 0;
    if (((bytes.x | bytes.y | bytes.z | bytes.w | last) & 0x80808080) == 0) {
        for (u32 i = 0; i < 16; i++) mask |= (u32)is_word(words[i / 4] >> 8 * (i % 4) & 255) << i;
        return mask & ~(mask << 1 | (u32)is_word(last));
    }
    u32 from = at, before = SEPARATOR, here, length;
    if (at > 0) {
        from = character_of(text, at - 1, classes);
        before = class_at(text, from, classes, length);
        from += length;
    }
    for (; from < at + 16; from += length) {
        here = class_at(text, from, classes, length);
        bool is_start = begins(before, here);
        if (here == PAIRED) {
            u32 unused, next = class_at(text, from + length, classes, unused);
            is_start = next == PAIRED || next == JOINED || before == SEPARATOR || before == WORD;
        }
        mask |= (u32)is_start << (from - at);
        before = here;
    }
    return mask;
}

// The bytes of the next character of a form, or 0 behind its last one. `before` is NOTHING, then what stands before it in the form.
__device__ __forceinline__ u32 next_of_form(
    const u8* __restrict__ text, u32 at, const u32* __restrict__ classes, u32& before) {
    u32 bytes, here = class_at(text, at, classes, bytes);
    bool is_end = here == SEPARATOR || before == ALL_READ || (here == WORD && before == PAIRED)
        || (here == PAIRED && before == WORD);
    if (is_end) return 0;
    before = here == PAIRED && before != NOTHING ? ALL_READ : here;
    return bytes;
}

__device__ __forceinline__ u64 stir(u64 hash, u64 word) {
    hash = (hash ^ word) * 0xff51afd7ed558ccdull;
    return hash ^ hash >> 32;
}

// The bytes of the form that begins at `at`, and its fingerprint of `bits` bits, which is not 0. More than LONGEST_FORM
// stands for any longer one.
__device__ __forceinline__ u32 read_form(
    const u8* __restrict__ text, u32 at, const u32* __restrict__ classes, u32 bits, u64& fingerprint) {
    u64 hash = 0x9e3779b97f4a7c15ull, word = 0;
    u32 length = 0, left = 0, before = NOTHING;
    for (; length <= LONGEST_FORM; length++, left--) {
        if (left == 0 && (left = next_of_form(text, at + length, classes, before)) == 0) break;
        word = word << 8 | lower(text[at + length]);
        if (length % 8 == 7) {
            hash = stir(hash, word);
            word = 0;
        }
    }
    hash = stir(stir(hash, word), length) * 0xc4ceb9fe1a85ec53ull;
    fingerprint = (hash ^ hash >> 32) >> (64 - bits);
    if (fingerprint == 0) fingerprint = 1;
    return length;
}

// Whether the form that begins at `at` has these bytes.
__device__ __forceinline__ bool is_form(
    const u8* __restrict__ text, u32 at, const u32* __restrict__ classes, const u8* __restrict__ form, u32 length) {
    u32 left = 0, before = NOTHING;
    for (u32 i = 0; i < length; i++, left--) {
        if (left == 0 && (left = next_of_form(text, at + i, classes, before)) == 0) return false;
        if (lower(text[at + i]) != form[i]) return false;
    }
    return left == 0 && next_of_form(text, at + length, classes, before) == 0;
}

// The slot of a fingerprint in a table of `mask` + 1 slots, or NONE if it is not among `probes` from its home on; `fresh`
// if it took an empty one.
__device__ __forceinline__ u32 find_slot(u64* slots, u32 mask, u32 probes, u64 fingerprint, bool& fresh) {
    fresh = false;
    u32 at = (u32)fingerprint & mask;
    for (u32 probe = 0; probe < probes; probe++) {
        u64 there = __ldcg(&slots[at]);
        if (there == 0) {
            there = atomicCAS(&slots[at], 0ull, fingerprint);
            fresh = there == 0;
            if (fresh) return at;
        }
        if (there == fingerprint) return at;
        at = (at + 1) & mask;
    }
    return NONE;
}
