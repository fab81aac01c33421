// The hash of a document's text: XXH3 of 64 bits, without a seed and with the secret of its
// specification. Eight threads share a document: a stripe of a long one is eight words, a short one
// has at most eight pairs of words at a time. The batch waits some 50 ms for a text of 64 MiB.

#define HASH_LANES 8

// Numbers of the specification: primes, and multipliers that mix.
#define PRIME32_1 0x9e3779b1u
#define PRIME32_2 0x85ebca77u
#define PRIME32_3 0xc2b2ae3du
#define PRIME64_1 0x9e3779b185ebca87ull
#define PRIME64_2 0xc2b2ae3d27d4eb4full
#define PRIME64_3 0x165667b19e3779f9ull
#define PRIME64_4 0x85ebca77c2b2ae63ull
#define PRIME64_5 0x27d4eb2f165667c5ull
#define MIX_1 0x165667919e3779f9ull
#define MIX_2 0x9fb21c651e98df25ull

// A stripe, and a block of them, behind which sums are mixed. The secret moves a word a stripe.
#define STRIPE_BYTES 64
#define BLOCK_STRIPES 16
#define BLOCK_BYTES (BLOCK_STRIPES * STRIPE_BYTES)

// The secret, 192 bytes. Threads read neighbours, which constant memory would serve one by one.
__device__ const u64 HASH_SECRET[24] = {
    0xbe4ba423396cfeb8ull, 0x1cad21f72c81017cull, 0xdb979083e96dd4deull, 0x1f67b3b7a4a44072ull,
    0x78e5c0cc4ee679cbull, 0x2172ffcc7dd05a82ull, 0x8e2443f7744608b8ull, 0x4c263a81e69035e0ull,
    0xcb00c391bb52283cull, 0xa32e531b8b65d088ull, 0x4ef90da297486471ull, 0xd8acdea946ef1938ull,
    0x3f349ce33f76faa8ull, 0x1d4f0bc7c7bbdcf9ull, 0x3159b4cd4be0518aull, 0x647378d9c97e9fc8ull,
    0xc3ebd33483acc5eaull, 0xeb6313faffa081c5ull, 0x49daf0b751dd0d17ull, 0x9e68d429265516d3ull,
    0xfca1477d58be162bull, 0xce31d07ad1b8f88full, 0x280416958f3acb45ull, 0x7e404bbbcafbd7afull,
};

// The sum of each thread before the first stripe.
__device__ const u64 HASH_FIRST[HASH_LANES] = {
    PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1};

// The eight bytes from `at` on as one word. Only the whole words that have some of them are read.
__device__ __forceinline__ u64 word_at(const u64* __restrict__ words, u32 at) {
    u32 shift = 8 * (at & 7);
    u64 low = words[at / 8], high = words[at / 8 + (shift != 0)];
    // Without a shift nothing of the higher one is left.
    return low >> shift | high << 1 << (63 - shift);
}

__device__ __forceinline__ u64 secret_at(u32 at) { return word_at(HASH_SECRET, at); }

// Both halves of the product in one word.
__device__ __forceinline__ u64 folded_product(u64 x, u64 y) { return x * y ^ __umul64hi(x, y); }

__device__ __forceinline__ u64 avalanche(u64 hash) {
    hash = (hash ^ hash >> 37) * MIX_1;
    return hash ^ hash >> 32;
}

// The one of XXH64, for the shortest texts.
__device__ __forceinline__ u64 avalanche_of_few(u64 hash) {
    hash = (hash ^ hash >> 33) * PRIME64_2;
    hash = (hash ^ hash >> 29) * PRIME64_3;
    return hash ^ hash >> 32;
}

__device__ __forceinline__ u64 rotated(u64 word, u32 bits) { return word << bits | word >> (64 - bits); }

// Of 16 bytes at most.
__device__ __forceinline__ u64 hash_of_few(const u64* __restrict__ words, u32 from, u32 length) {
    if (length > 8) {
        u64 low = word_at(words, from) ^ secret_at(24) ^ secret_at(32);
        u64 high = word_at(words, from + length - 8) ^ secret_at(40) ^ secret_at(48);
        u64 swapped = (u64)__byte_perm((u32)low, 0, 0x0123) << 32 | __byte_perm((u32)(low >> 32), 0, 0x0123);
        return avalanche(length + swapped + high + folded_product(low, high));
    }
    const u8* text = (const u8*)words + from;
    if (length >= 4) {
        u64 word = 0;
        for (u32 i = 4; i-- > 0;) word = word << 8 | text[i];
        for (u32 i = 4; i-- > 0;) word = word << 8 | text[length - 4 + i];
        word ^= secret_at(8) ^ secret_at(16);
        word = (word ^ rotated(word, 49) ^ rotated(word, 24)) * MIX_2;
        word = (word ^ (word >> 35) + length) * MIX_2;
        return word ^ word >> 28;
    }
    if (length == 0) return avalanche_of_few(secret_at(56) ^ secret_at(64));
    u32 word = (u32)text[0] << 16 | (u32)text[length / 2] << 24 | text[length - 1] | length << 8;
    return avalanche_of_few(word ^ (u32)HASH_SECRET[0] ^ (u32)(HASH_SECRET[0] >> 32));
}

// Two words of the text with two of the secret.
__device__ __forceinline__ u64 mix(const u64* __restrict__ words, u32 at, u32 secret) {
    return folded_product(word_at(words, at) ^ secret_at(secret), word_at(words, at + 8) ^ secret_at(secret + 8));
}

// The sum over the threads of a document, `mask`, for all of them.
__device__ __forceinline__ u64 sum_of_lanes(u32 mask, u64 value) {
    for (u32 step = 1; step < HASH_LANES; step *= 2) value += __shfl_xor_sync(mask, value, step);
    return value;
}

// Of 17 to 240 bytes.
__device__ __forceinline__ u64 hash_of_some(
    const u64* __restrict__ words, u32 from, u32 length, u32 lane, u32 mask) {
    u64 hash = length * PRIME64_1;
    if (length <= 128) {
        // Two pairs of words for each 32 bytes, one from either end.
        u32 depth = lane / 2;
        bool has_pair = length > 32 * depth;
        u32 at = lane & 1 ? length - 16 * (depth + 1) : 16 * depth;
        return avalanche(hash + sum_of_lanes(mask, has_pair ? mix(words, from + at, 16 * lane) : 0));
    }
    hash = avalanche(hash + sum_of_lanes(mask, mix(words, from + 16 * lane, 16 * lane)));
    // What is behind the first eight pairs, then the last 16 bytes.
    u64 more = lane == 7 ? mix(words, from + length - 16, 119)
        : lane + 8 < length / 16 ? mix(words, from + 16 * (lane + 8), 16 * lane + 3) : 0;
    return avalanche(hash + sum_of_lanes(mask, more));
}

// A thread's state in a long text. A block's words are added to the neighbour's sum at its end.
struct Lane {
    u64 sum, words;

    __device__ __forceinline__ void add(u64 word, u64 secret) {
        u64 key = word ^ secret;
        words += word;
        sum += (key & 0xffffffff) * (key >> 32);
    }

    __device__ __forceinline__ void give(u32 mask) {
        sum += __shfl_xor_sync(mask, words, 1);
        words = 0;
    }
};

// Of 241 bytes or more.
__device__ __forceinline__ u64 hash_of_many(
    const u64* __restrict__ words, u32 from, u32 length, u32 lane, u32 mask) {
    Lane here = {HASH_FIRST[lane], 0};
    u32 at = from + 8 * lane, last = from + length - STRIPE_BYTES + 8 * lane;
    // The last byte is of a stripe of its own, which ends with the text and belongs to no block.
    u32 blocks = (length - 1) / BLOCK_BYTES, stripes = (length - 1) % BLOCK_BYTES / STRIPE_BYTES;
    for (u32 block = 0; block < blocks; block++, at += BLOCK_BYTES) {
#pragma unroll
        for (u32 i = 0; i < BLOCK_STRIPES; i++) here.add(word_at(words, at + STRIPE_BYTES * i), HASH_SECRET[lane + i]);
        here.give(mask);
        here.sum = (here.sum ^ here.sum >> 47 ^ HASH_SECRET[16 + lane]) * PRIME32_1;
    }
#pragma unroll 4
    for (u32 i = 0; i < stripes; i++) here.add(word_at(words, at + STRIPE_BYTES * i), HASH_SECRET[lane + i]);
    here.add(word_at(words, last), secret_at(121 + 8 * lane));
    here.give(mask);
    u64 mine = here.sum ^ secret_at(11 + 8 * lane), next = __shfl_xor_sync(mask, mine, 1);
    // Both threads of a pair have it.
    u64 product = lane & 1 ? 0 : folded_product(mine, next);
    return avalanche(length * PRIME64_1 + sum_of_lanes(mask, product));
}

// contents [documents]: the hash of each text, which is what stands before its separator.
extern "C" __global__ void invert_hash_documents(
    const u8* __restrict__ text, const u32* __restrict__ document_starts, u32 documents, u64* contents) {
    u32 document = (blockIdx.x * blockDim.x + threadIdx.x) / HASH_LANES, lane = threadIdx.x % HASH_LANES;
    if (document >= documents) return;
    u32 mask = ((1u << HASH_LANES) - 1) << (lane_of() - lane);
    u32 from = document_starts[document], length = document_starts[document + 1] - 1 - from;
    const u64* words = (const u64*)text;
    u64 hash = 0;
    if (length > 240) hash = hash_of_many(words, from, length, lane, mask);
    else if (length > 16) hash = hash_of_some(words, from, length, lane, mask);
    else if (lane == 0) hash = hash_of_few(words, from, length);
    if (lane == 0) contents[document] = hash;
}
