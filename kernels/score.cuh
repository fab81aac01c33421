// The score of a posting, and the order of documents, which every engine shares.

__device__ __forceinline__ float score_of(float weight, u32 tf, float norm) {
    float f = (float)tf;
    return __fdiv_rn(__fmul_rn(weight, f), __fadd_rn(f, norm));
}

// Of src/score/weight.rs, by number.
enum Formula { SATURATION, LIFTED, DIRICHLET, DPH };

// What follows is as there, operation by operation; none is fused with another.
__device__ __forceinline__ float ln_of(float x) {
    const u32 LEAST_MANTISSA = 0x3f3504f3;
    u32 shifted = __float_as_uint(x) - LEAST_MANTISSA;
    float exponent = (float)((int)shifted >> 23);
    float mantissa = __uint_as_float((shifted & 0x007fffff) + LEAST_MANTISSA);
    float s = (mantissa - 1.0f) / (mantissa + 1.0f), z = s * s;
    float series = z * (2.0f / 3.0f + z * (2.0f / 5.0f + z * (2.0f / 7.0f + z * (2.0f / 9.0f))));
    return exponent * 0.693147180559945309f + (2.0f * s + s * series);
}

__device__ __forceinline__ float dph_of(float inverse, float tf, float length) {
    float share = tf / length, rest = 1.0f - share, normal = ln_of(6.28318530717958648f * tf * rest);
    float score = rest * rest / (tf + 1.0f) * (tf * ln_of(share * inverse) + 0.5f * normal);
    return rest > 0.0f ? score * 1.44269504088896341f : 0.0f;
}

// By a formula other than saturation. A norm of infinity is that of a deleted document.
__device__ __noinline__ float other_score(u32 formula, float factor, float more, u32 tf, float norm) {
    if (norm == __uint_as_float(0x7f800000)) return 0.0f;
    if (formula == LIFTED) return score_of(factor, tf, norm) + more;
    float f = (float)tf, score = formula == DIRICHLET ? ln_of(1.0f + f * more) + norm : dph_of(more, f, norm);
    return factor * (score > 1e-30f ? score : 1e-30f);
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
