// Reads numbers of few bits, and unary codes, in the bytes of a list, which is 16-aligned.

// `width` bits of a list, 0 to 32, from a bit of it on. A word behind them is read as well.
__device__ __forceinline__ u32 bits_at(const u8* bytes, u64 bit, u32 width) {
    const u32* words = (const u32*)bytes + (bit >> 5);
    u32 value = __funnelshift_r(words[0], words[1], (u32)bit & 31);
    return width < 32 ? value & ((1u << width) - 1) : value;
}

__device__ __forceinline__ u32 word_at(const u8* bytes, u64 at) { return bits_at(bytes, 8 * at, 32); }

__device__ __forceinline__ u32 shifted(u32 high, u32 width) { return width < 32 ? high << width : 0; }

// Where zero number `n` of a unary vector is, in bits from `first`.
__device__ __forceinline__ u32 find_zero(const u8* bytes, u64 first, u32 n) {
    for (u32 base = 0;; base += 32) {
        u32 zeros = ~bits_at(bytes, first + base, 32), here = __popc(zeros);
        if (n >= here) {
            n -= here;
            continue;
        }
        for (; n > 0; n--) zeros &= zeros - 1;
        return base + (u32)__ffs((int)zeros) - 1;
    }
}

__device__ __forceinline__ u64 padded(u64 bytes) { return (bytes + 15) & ~15ull; }
