// The score of a posting, and the order of documents, which every engine shares.

// Every other way to score replaces this function.
__device__ __forceinline__ float score_of(float weight, u32 tf, float norm) {
    float f = (float)tf;
    return __fdiv_rn(__fmul_rn(weight, f), __fadd_rn(f, norm));
}

// Greater for the better document; of equal scores, which are not negative, for the smaller docid.
__device__ __forceinline__ u64 key_of(u32 docid, float score) {
    return (u64)__float_as_uint(score) << 32 | (u32)~docid;
}

__device__ __forceinline__ u64 best_of_warp(u64 key) {
    for (u32 step = 16; step > 0; step /= 2) {
        u64 other = __shfl_xor_sync(ALL, key, step);
        key = other > key ? other : key;
    }
    return key;
}

__device__ __forceinline__ u32 sum_of_warp(u32 value) {
    for (u32 step = 16; step > 0; step /= 2) value += __shfl_xor_sync(ALL, value, step);
    return value;
}
