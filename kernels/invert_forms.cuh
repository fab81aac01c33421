// Where are the forms of a text, and which are equal? A form is a stretch of word bytes: ASCII letters and digits, and all
// bytes from 0x80 on. What it means is the host's business (text/scan.rs). ASCII letters count as lower case.

__device__ __forceinline__ bool is_word(u32 byte) {
    return byte >= 0x80 || (byte | 0x20) - 'a' < 26u || byte - '0' < 10u;
}

__device__ __forceinline__ u32 lower(u32 byte) { return byte - 'A' < 26u ? byte | 0x20 : byte; }

// At which of 16 bytes a form begins, a bit each. `at` is a multiple of 16.
__device__ __forceinline__ u32 form_starts(const u8* __restrict__ text, u32 at) {
    uint4 bytes = *(const uint4*)(text + at);
    u32 words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
    u32 mask = 0;
    for (u32 i = 0; i < 16; i++) mask |= (u32)is_word(words[i / 4] >> 8 * (i % 4) & 255) << i;
    u32 before = at > 0 && is_word(text[at - 1]);
    return mask & ~(mask << 1 | before);
}

__device__ __forceinline__ u64 stir(u64 hash, u64 word) {
    hash = (hash ^ word) * 0xff51afd7ed558ccdull;
    return hash ^ hash >> 32;
}

// The bytes of the form that begins at `at`, and its fingerprint of `bits` bits, which is not 0. More than LONGEST_FORM
// stands for any longer one.
__device__ __forceinline__ u32 read_form(const u8* __restrict__ text, u32 at, u32 bits, u64& fingerprint) {
    u64 hash = 0x9e3779b97f4a7c15ull, word = 0;
    u32 length = 0;
    for (; length <= LONGEST_FORM; length++) {
        u32 byte = text[at + length];
        if (!is_word(byte)) break;
        word = word << 8 | lower(byte);
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

// Whether the form that begins at `at` has these bytes. Text ends with a byte that is no word byte.
__device__ __forceinline__ bool is_form(
    const u8* __restrict__ text, u32 at, const u8* __restrict__ form, u32 length) {
    for (u32 i = 0; i < length; i++) {
        if (lower(text[at + i]) != form[i]) return false;
    }
    return !is_word(text[at + length]);
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
