// Finds the forms of a text, and tells which are equal. A form is a run of letters and digits, or a
// part of one that has the words of its own whatever stands around it; src/gpu/invert/classes.rs
// defines it and has the same walk. The host gives it its meaning. ASCII is lower-cased.

// Classes of characters.
#define WORD 0
#define SEPARATOR 1
#define PAIRED 2
#define JOINED 3
// Before the first character of a form, and behind all of it.
#define NOTHING 4
#define ALL_READ 5

__device__ __forceinline__ bool is_word(u32 byte) { return (byte | 0x20) - 'a' < 26u || byte - '0' < 10u; }

__device__ __forceinline__ u32 lower(u32 byte) { return byte - 'A' < 26u ? byte | 0x20 : byte; }

// The class of the character that begins at `at`, and its bytes. A byte of no character separates,
// and so does what ends a text: nothing behind that is read. classes: bytes that say in which page
// a character is, then pages of 256 characters.
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
    // Overlong, half of a surrogate pair, or behind the last.
    if (more == 2 && (code < 0x800 || code >> 11 == 0x1b)) return SEPARATOR;
    if (more == 3 && (code < 0x10000 || code > 0x10ffff)) return SEPARATOR;
    bytes = 1 + more;
    const u32* page = classes + CLASS_PAGES / 4 + 16 * ((const u8*)classes)[code >> 8];
    return page[(code & 255) / 16] >> 2 * (code & 15) & 3;
}

// Where the character begins that has the byte at `at`; `at` itself if there is none.
__device__ __forceinline__ u32 character_of(const u8* __restrict__ text, u32 at, const u32* __restrict__ classes) {
    for (u32 from = at; (text[from] & 0xc0) == 0x80 && from > 0 && at - from < 3;) {
        u32 bytes;
        class_at(text, --from, classes, bytes);
        if (from + bytes > at) return from;
    }
    return at;
}

// At which of 16 bytes a form begins, a bit each. `at` is a multiple of 16.
__device__ __forceinline__ u32 form_starts(const u8* __restrict__ text, u32 at, const u32* __restrict__ classes) {
    uint4 bytes = *(const uint4*)(text + at);
    u32 words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
    u32 mask = 0, last = at > 0 ? text[at - 1] : 0;
    for (u32 i = 0; i < 16; i++) mask |= (u32)is_word(words[i / 4] >> 8 * (i % 4) & 255) << i;
    if (((bytes.x | bytes.y | bytes.z | bytes.w | last) & 0x80808080) == 0) {
        return mask & ~(mask << 1 | (u32)is_word(last));
    }
    // Bytes of characters of each class, and first ones of characters. Bit 0 is the byte before.
    u32 letters = mask << 1, paired = 0, joined = 0, firsts = mask << 1;
    auto put = [&](u32 here, u32 bits) {
        letters |= here == WORD ? bits : 0;
        paired |= here == PAIRED ? bits : 0;
        joined |= here == JOINED ? bits : 0;
    };
    u32 length, here;
    if (at > 0) {
        u32 from = character_of(text, at - 1, classes);
        here = class_at(text, from, classes, length);
        put(here, (1u << (from + length - at + 1)) - 1);
    }
    u32 leads = 0;
    // The highest bits of the four bytes of a word come together.
    for (u32 i = 0; i < 4; i++) leads |= ((words[i] & words[i] << 1 & 0x80808080) >> 7) * 0x10204080 >> 28 << 4 * i;
    for (; leads != 0; leads &= leads - 1) {
        u32 i = (u32)__ffs((int)leads) - 1;
        here = class_at(text, at + i, classes, length);
        put(here, ((1u << length) - 1) << (i + 1));
        firsts |= 2u << i;
        u32 end = i + length;
        // All that matters behind the bytes is whether the last letter makes a pair with it.
        if (here == PAIRED && end >= 16) {
            put(class_at(text, at + end, classes, length), 2u << end);
            firsts |= 2u << end;
        }
    }
    u32 pairs = paired | joined;
    // Last bytes of paired letters (of three or four bytes) behind which another one makes a pair.
    u32 followed = paired & (firsts & pairs) >> 1;
    u32 starts = (letters & ~((letters | joined) << 1)) | (joined & ~((letters | pairs) << 1))
        | (paired & (~(pairs << 1) | followed >> 2 | followed >> 3));
    return (firsts & starts) >> 1 & 0xffff;
}

// The bytes of the next character of a form, or 0 behind its last. `before`: NOTHING, then the
// class of the character before.
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

// The bytes of the form that begins at `at`, more than LONGEST_FORM for any longer one, and its
// fingerprint of `bits` bits, which is not 0.
__device__ __forceinline__ u32 read_form(
    const u8* __restrict__ text, u32 at, const u32* __restrict__ classes, u32 bits, u64& fingerprint) {
    u64 hash = 0x9e3779b97f4a7c15ull, word = 0;
    u32 length = 0, byte = 0;
    auto add = [&] {
        word = word << 8 | lower(byte);
        if (length % 8 == 7) {
            hash = stir(hash, word);
            word = 0;
        }
    };
    for (; length <= LONGEST_FORM; length++) {
        byte = text[at + length];
        if (!is_word(byte)) break;
        add();
    }
    if (byte >= 0x80) {
        u32 left = 0, before = length > 0 ? WORD : NOTHING;
        for (; length <= LONGEST_FORM; length++, left--) {
            if (left == 0 && (left = next_of_form(text, at + length, classes, before)) == 0) break;
            byte = text[at + length];
            add();
        }
    }
    hash = stir(stir(hash, word), length) * 0xc4ceb9fe1a85ec53ull;
    fingerprint = (hash ^ hash >> 32) >> (64 - bits);
    if (fingerprint == 0) fingerprint = 1;
    return length;
}

// Whether the form that begins at `at` has these bytes. Equal bytes are equal characters, so that
// beside them only its end has to be looked at.
__device__ __forceinline__ bool is_form(
    const u8* __restrict__ text, u32 at, const u32* __restrict__ classes, const u8* __restrict__ form, u32 length) {
    for (u32 i = 0; i < length; i++) {
        if (lower(text[at + i]) != form[i]) return false;
    }
    u32 end = at + length, last = text[end - 1], behind = text[end];
    if (last < 0x80 && behind < 0x80) return !is_word(behind);
    u32 bytes, from = character_of(text, end - 1, classes), before = class_at(text, from, classes, bytes);
    if (before == PAIRED && from != at) before = ALL_READ;
    return next_of_form(text, end, classes, before) == 0;
}

// The slot of a fingerprint in a table of `mask` + 1 slots, or NONE if it is not among `probes`
// from its home on; `fresh` if it took an empty one.
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
