// Postings as in src/codec/folded.rs: vbyte(2 * gap + (tf > 1)), then vbyte(tf - 2) if tf > 1.

__device__ __forceinline__ u32 vbyte_bytes(u64 value) {
    u32 bytes = 1;
    for (; value >= 0x80; value >>= 7) bytes++;
    return bytes;
}

__device__ __forceinline__ u32 posting_bytes(u32 gap, u32 tf) {
    return vbyte_bytes((u64)gap << 1) + (tf > 1 ? vbyte_bytes(tf - 2) : 0);
}

__device__ __forceinline__ u8* put_vbyte(u8* to, u64 value) {
    for (; value >= 0x80; value >>= 7) *to++ = (u8)(value | 0x80);
    *to++ = (u8)value;
    return to;
}

__device__ __forceinline__ u8* put_posting(u8* to, u32 gap, u32 tf) {
    to = put_vbyte(to, (u64)gap << 1 | (tf > 1));
    return tf > 1 ? put_vbyte(to, tf - 2) : to;
}

// The postings of a batch, by term, then document; a thread looks at one.
struct Postings {
    const u32* terms;
    const u32* documents;
    const u32* starts;
    // By term: the docid behind the last one in the run's lists.
    const u32* lasts;
    u32 first;

    __device__ __forceinline__ u32 tf(u32 at) const { return starts[at + 1] - starts[at]; }
    __device__ __forceinline__ bool begins_list(u32 at) const { return at == 0 || terms[at] != terms[at - 1]; }
    // Documents between this posting and the one before it in its list.
    __device__ __forceinline__ u32 gap(u32 at) const {
        if (begins_list(at)) return first + documents[at] - lasts[terms[at]];
        return documents[at] - documents[at - 1] - 1;
    }
};
