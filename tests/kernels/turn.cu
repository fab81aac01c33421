// Turns the values of each thread block around, through shared memory: what the tests of modules,
// copies and tickets launch. No job does.
//
// in  [count]
// out [count]  out[block * CTA + i] = in[block * CTA + CTA - 1 - i]; a short last block turns its own
//
// Geometry: ceil(count / CTA) thread blocks of CTA threads.

extern "C" __global__ void turn(const unsigned* __restrict__ in, unsigned* __restrict__ out,
                                unsigned count) {
    __shared__ unsigned values[CTA];
    unsigned start = blockIdx.x * CTA;
    unsigned here = min(CTA, count - start);
    if (threadIdx.x < here) values[threadIdx.x] = in[start + threadIdx.x];
    __syncthreads();
    if (threadIdx.x < here) out[start + threadIdx.x] = values[here - 1 - threadIdx.x];
}

// Ends the launch with an error that everything on the device sees from then on.
extern "C" __global__ void trap() { asm("trap;"); }
