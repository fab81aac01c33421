// The exceptions of a column of a segment of `pfor`: two arrays, overflows and distances, each
// coded by pfor again with plain exceptions (section 6.2, one level; src/codec/pfor/nested.rs). A
// block decodes all of both arrays, which are much smaller than the list.

#define OPEN_THREADS 256

// Array `which` of a column, into `out` [exceptions].
__device__ __forceinline__ void open_array(const u8* bytes, const Column& of, u32 which, u64 slots, u32* room, u32* out) {
    u32 width = of.widths[which], count = of.counts[which], carry = 0;
    u64 rest = of.rest[which];
    for (u32 x = threadIdx.x; x < of.exceptions; x += blockDim.x) out[x] = bits_at(bytes, 8 * slots + (u64)x * width, width);
    for (u32 base = 0; base < count; base += blockDim.x) {
        u32 y = base + threadIdx.x, total;
        u32 distance = y < count ? word_at(bytes, rest + 4 * ((u64)count + y)) + 1 : 0;
        // Its barriers stand between the slots above and what is added to them.
        u32 place = carry + sums_of_block(room, distance, total) - 1;
        if (y < count && place < of.exceptions) out[place] += shifted(word_at(bytes, rest + 4 * (u64)y) + 1, width);
        carry += total;
    }
    __syncthreads();
}

__device__ __forceinline__ void open_column(const Term& term, const List& list, u32 s, u32 column, u32* room, u32* words) {
    const Segment& segment = list.segments[s];
    if (segment.codec != PFOR) return;
    const Column& of = segment.columns[column];
    Exceptions exceptions = exceptions_of(words, term, segment, column);
    open_array(list.bytes, of, 0, of.begins, room, exceptions.highs);
    open_array(list.bytes, of, 1, of.unary, room, exceptions.places);
    u32 carry = 0;
    for (u32 base = 0; base < of.exceptions; base += blockDim.x) {
        u32 x = base + threadIdx.x, total;
        u32 distance = x < of.exceptions ? exceptions.places[x] + 1 : 0;
        u32 upto = carry + sums_of_block(room, distance, total);
        if (x < of.exceptions) {
            exceptions.places[x] = upto - 1;
            exceptions.highs[x] += 1;
        }
        carry += total;
    }
    __syncthreads();
    for (u32 b = threadIdx.x; b <= segment.blocks; b += blockDim.x) {
        exceptions.firsts[b] = find(exceptions.places, 0, of.exceptions, b * term.block_len);
    }
}
