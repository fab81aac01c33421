// What the tests of modules, streams, copies and tickets launch. No job does.

// Turns the values of each thread block around, through shared memory.
//
// in  [count]
// out [count]  out[block * CTA + i] = in[block * CTA + CTA - 1 - i]; a short last block turns its
//              own
//
// Geometry: ceil(count / CTA) thread blocks of CTA threads, with 4 * CTA bytes of shared memory.
extern "C" __global__ void turn(const u32* __restrict__ in, u32* __restrict__ out, u32 count) {
    DYNAMIC_SHARED(u32, values);
    u32 start = blockIdx.x * CTA;
    u32 here = min(CTA, count - start);
    if (threadIdx.x < here) values[threadIdx.x] = in[start + threadIdx.x];
    __syncthreads();
    if (threadIdx.x < here) out[start + threadIdx.x] = values[here - 1 - threadIdx.x];
}

// The same for all `count` values by one thread block, in 4 * count bytes of shared memory.
extern "C" __global__ void turn_all(const u32* __restrict__ in, u32* __restrict__ out, u32 count) {
    DYNAMIC_SHARED(u32, values);
    for (u32 i = threadIdx.x; i < count; i += blockDim.x) values[i] = in[i];
    __syncthreads();
    for (u32 i = threadIdx.x; i < count; i += blockDim.x) out[i] = values[count - 1 - i];
}

// Runs until somebody writes to `flag`.
extern "C" __global__ void wait_for(const volatile u32* flag) {
    while (*flag == 0) {}
}

// Ends the launch with an error that everything on the device sees from then on.
extern "C" __global__ void trap() { __trap(); }
