// Every intrinsic for numbers, on a pair of words each: out [threads * 24].

extern "C" __global__ void arithmetic(const u32* as, const u32* bs, u32* out) {
    u32 a = as[threadIdx.x], b = bs[threadIdx.x];
    float x = __uint_as_float(a), y = __uint_as_float(b);
    u32* own = out + threadIdx.x * 24;
    own[0] = __float_as_uint(__fadd_rn(x, y));
    own[1] = __float_as_uint(__fmul_rn(x, y));
    own[2] = __float_as_uint(__fdiv_rn(x, y));
    own[3] = __float_as_uint(__fadd_ru(x, y));
    own[4] = __float_as_uint(__fmul_ru(x, y));
    own[5] = __float_as_uint(__fdiv_ru(x, y));
    own[6] = __float_as_uint(__fadd_rd(x, y));
    own[7] = __float_as_uint(__fmul_rd(x, y));
    own[8] = __float_as_uint(__fdiv_rd(x, y));
    // Two roundings: never one.
    own[9] = __float_as_uint(__fadd_rn(__fmul_rn(x, y), x));
    own[10] = __float_as_uint(x * y + x);
    own[11] = __float2uint_rn(x);
    own[12] = __float2uint_ru(x);
    own[13] = __float2uint_rz(x);
    own[14] = __float_as_uint(__uint2float_rn(a));
    own[15] = __float_as_uint(__uint2float_ru(a));
    own[16] = min(a, b);
    own[17] = max(a, b);
    own[18] = __popc(a);
    own[19] = __clz(a);
    own[20] = __ffs(a);
    own[21] = __vmaxu2(a, b);
    own[22] = __vaddus4(a, b);
    own[23] = __umulhi(a, b);
}
