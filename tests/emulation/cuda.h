// CUDA C++ on the CPU, for tests: a kernel's source compiles unchanged against this header. Blocks run
// one after the other, the threads of a block as fibers that change at collectives, so a run is
// deterministic; a seed other than 0 runs them in a random order, under which a kernel without races
// gives the same results.
//
// - A collective that lanes named in its mask do not reach ends the program with status 3 and a message
//   that names lines and lanes.
// - Compiled with -fsanitize=address, buffers and dynamic shared memory have exactly the bytes that were
//   asked for, and each static shared array stands apart: access outside ends the program.
// - Dynamic shared memory is declared as DYNAMIC_SHARED(type, name), which is
//   `extern __shared__ type name[]` on a device.
// - Atomics are plain: one thread of the machine runs all fibers.
//
// EMULATION_MAIN(KERNEL(a), KERNEL(b)) is the program: one launch, read from stdin in the words of
// tests/kernels/emulator.rs; all buffers are written to stdout.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __shared__ static
#define DYNAMIC_SHARED(type, name) type* name = (type*)emulation::dynamic_shared()

struct uint2 { unsigned x, y; } __attribute__((aligned(8)));
struct uint3 { unsigned x, y, z; };
struct uint4 { unsigned x, y, z, w; } __attribute__((aligned(16)));
struct ulonglong2 { unsigned long long x, y; } __attribute__((aligned(16)));
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }

namespace emulation {

[[noreturn]] inline void fail(const std::string& why) {
    fflush(stdout);
    fprintf(stderr, "emulation: %s\n", why.c_str());
    _exit(3);
}

enum State { READY, AT_COLLECTIVE, AT_BARRIER, DONE };

enum Kind { SYNC, SHFL, SHFL_UP, SHFL_DOWN, SHFL_XOR, BALLOT, MATCH_ANY, REDUCE, BARRIER };
inline const char* name_of(Kind kind) {
    static const char* names[] = {"__syncwarp", "__shfl_sync", "__shfl_up_sync", "__shfl_down_sync",
                                  "__shfl_xor_sync", "a vote", "__match_any_sync", "a reduction",
                                  "__syncthreads"};
    return names[kind];
}

// What a fiber has brought to the collective at which it waits, and what it takes away.
struct Call {
    Kind kind;
    unsigned mask;
    int line;
    uint64_t value;
    unsigned lane, width;
    uint64_t (*reduce)(uint64_t, uint64_t);
};

const size_t STACK_BYTES = 256 << 10;

struct Fiber {
    State state = DONE;
    uint3 thread;
    unsigned lane = 0;
    Call call;
    uint64_t result = 0;
    char* stack = nullptr;
    void* saved = nullptr;
#if !defined(__x86_64__)
    ucontext_t context;
#endif
};

struct Machine {
    std::vector<Fiber> fibers;
    Fiber* self = nullptr;
    std::function<void()> body;
    uint3 block_index, block_size, grid_size;
    unsigned char* dynamic = nullptr;
    uint64_t seed = 0;
    void* saved = nullptr;
#if !defined(__x86_64__)
    ucontext_t context;
#endif
#if defined(__SANITIZE_ADDRESS__)
    const void* own_stack = nullptr;
    size_t own_bytes = 0;
    void* own_fake = nullptr;
#endif
};
inline Machine machine;

inline void* dynamic_shared() { return machine.dynamic; }

#if defined(__x86_64__)
extern "C" void emulation_switch(void** save, void* to);
asm(R"(
.text
.globl emulation_switch
.type emulation_switch, @function
emulation_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size emulation_switch, . - emulation_switch
)");
#endif

// From the running fiber to the scheduler.
inline void leave(bool for_ever) {
    Fiber* self = machine.self;
#if defined(__SANITIZE_ADDRESS__)
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(for_ever ? nullptr : &fake, machine.own_stack, machine.own_bytes);
#endif
#if defined(__x86_64__)
    emulation_switch(&self->saved, machine.saved);
#else
    swapcontext(&self->context, &machine.context);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
    (void)for_ever;
}

inline void entry() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &machine.own_stack, &machine.own_bytes);
#endif
    machine.body();
    machine.self->state = DONE;
    leave(true);
}

// From the scheduler to a fiber.
inline void enter(Fiber& fiber) {
    machine.self = &fiber;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&machine.own_fake, fiber.stack, STACK_BYTES);
#endif
#if defined(__x86_64__)
    emulation_switch(&machine.saved, fiber.saved);
#else
    swapcontext(&machine.context, &fiber.context);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(machine.own_fake, nullptr, nullptr);
#endif
}

inline void begin(Fiber& fiber) {
    if (fiber.stack == nullptr) {
        // The lowest page stays closed: a stack that grows too far ends the program.
        char* pages = (char*)mmap(nullptr, STACK_BYTES + 4096, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (pages == MAP_FAILED || mprotect(pages, 4096, PROT_NONE) != 0) fail("no memory for stacks");
        fiber.stack = pages + 4096;
    }
#if defined(__x86_64__)
    // As behind a call: 8 bytes below a multiple of 16.
    void** top = (void**)(fiber.stack + STACK_BYTES) - 1;
    *--top = (void*)&entry;
    for (int i = 0; i < 6; i++) *--top = nullptr;
    fiber.saved = top;
#else
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack;
    fiber.context.uc_stack.ss_size = STACK_BYTES;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, entry, 0);
#endif
    fiber.state = READY;
}

// Waits at a collective and returns what it gives this lane.
inline uint64_t meet(Kind kind, unsigned mask, int line, uint64_t value = 0, unsigned lane = 0,
                     unsigned width = 32, uint64_t (*reduce)(uint64_t, uint64_t) = nullptr) {
    Fiber* self = machine.self;
    self->call = {kind, mask, line, value, lane, width, reduce};
    if (kind == BARRIER) {
        self->state = AT_BARRIER;
    } else {
        if (!(mask >> self->lane & 1)) {
            fail("line " + std::to_string(line) + ": lane " + std::to_string(self->lane) + " calls " +
                 name_of(kind) + ", but the mask does not name it");
        }
        self->state = AT_COLLECTIVE;
    }
    leave(false);
    return self->result;
}

// What a collective gives to one lane of a warp.
inline uint64_t result_of(const Fiber* warp, unsigned lane) {
    const Call& call = warp[lane].call;
    unsigned base = lane & ~(call.width - 1), own = lane - base, from = own;
    uint64_t result = 0;
    switch (call.kind) {
        case SYNC:
        case BARRIER: return 0;
        case BALLOT:
        case MATCH_ANY:
        case REDUCE: {
            bool first = true;
            for (unsigned other = 0; other < 32; other++) {
                if (!(call.mask >> other & 1)) continue;
                uint64_t value = warp[other].call.value;
                if (call.kind == BALLOT) result |= (uint64_t)(value != 0) << other;
                if (call.kind == MATCH_ANY) result |= (uint64_t)(value == call.value) << other;
                if (call.kind == REDUCE) result = first ? value : call.reduce(result, value);
                first = false;
            }
            return result;
        }
        case SHFL: from = call.lane & (call.width - 1); break;
        case SHFL_UP: from = own >= call.lane ? own - call.lane : own; break;
        case SHFL_DOWN: from = own + call.lane < call.width ? own + call.lane : own; break;
        case SHFL_XOR: from = (own ^ call.lane) < call.width ? own ^ call.lane : own; break;
    }
    if (!(call.mask >> (base + from) & 1)) {
        fail("line " + std::to_string(call.line) + ": lane " + std::to_string(lane) + " asks lane " +
             std::to_string(base + from) + " for its value, which the mask does not name");
    }
    return warp[base + from].call.value;
}

// Lets go the lanes of a warp whose collective is complete; says whether there were any.
inline bool resolve(Fiber* warp, unsigned lanes) {
    bool any = false;
    for (unsigned lane = 0; lane < lanes; lane++) {
        if (warp[lane].state != AT_COLLECTIVE) continue;
        const Call& call = warp[lane].call;
        unsigned mask = call.mask;
        bool complete = lanes == 32 || mask >> lanes == 0;
        for (unsigned other = 0; other < lanes; other++) {
            if (!(mask >> other & 1)) continue;
            const Fiber& fiber = warp[other];
            complete = complete && fiber.state == AT_COLLECTIVE && fiber.call.kind == call.kind &&
                       fiber.call.mask == mask;
        }
        if (!complete) continue;
        for (unsigned other = 0; other < lanes; other++) {
            if (mask >> other & 1) warp[other].result = result_of(warp, other);
        }
        for (unsigned other = 0; other < lanes; other++) {
            if (mask >> other & 1) warp[other].state = READY;
        }
        any = true;
    }
    return any;
}

[[noreturn]] inline void stuck(const std::vector<Fiber>& fibers, size_t threads) {
    std::string why = "block " + std::to_string(machine.block_index.x) + " is stuck:";
    size_t told = 0;
    for (size_t t = 0; t < threads && told < 64; t++) {
        const Fiber& fiber = fibers[t];
        if (fiber.state == DONE && t > 0 && fibers[t - 1].state == DONE) continue;
        told += 1;
        why += "\n  thread " + std::to_string(t);
        if (fiber.state == DONE) {
            why += " has returned";
        } else {
            char mask[16];
            snprintf(mask, sizeof mask, "%08x", fiber.call.mask);
            why += std::string(" waits at ") + name_of(fiber.call.kind) + ", line " +
                   std::to_string(fiber.call.line) + ", mask " + mask;
        }
    }
    fail(why);
}

inline uint64_t random() {
    machine.seed ^= machine.seed << 13;
    machine.seed ^= machine.seed >> 7;
    machine.seed ^= machine.seed << 17;
    return machine.seed;
}

inline void run_block(size_t threads) {
    auto& fibers = machine.fibers;
    std::vector<size_t> order(threads);
    for (size_t t = 0; t < threads; t++) {
        order[t] = t;
        fibers[t].thread = {(unsigned)t, 0, 0};
        fibers[t].lane = t % 32;
        begin(fibers[t]);
    }
    for (;;) {
        bool any = false;
        if (machine.seed != 0) {
            for (size_t t = threads - 1; t > 0; t--) std::swap(order[t], order[random() % (t + 1)]);
        }
        for (size_t t : order) {
            if (fibers[t].state != READY) continue;
            enter(fibers[t]);
            any = true;
        }
        for (size_t warp = 0; warp < threads; warp += 32) {
            unsigned lanes = threads - warp < 32 ? threads - warp : 32;
            any = resolve(&fibers[warp], lanes) || any;
        }
        size_t done = 0, waiting = 0;
        for (size_t t = 0; t < threads; t++) {
            done += fibers[t].state == DONE;
            waiting += fibers[t].state == AT_BARRIER;
        }
        if (done == threads) return;
        if (waiting > 0 && waiting + done == threads) {
            uint64_t sum = 0;
            for (size_t t = 0; t < threads; t++) {
                if (fibers[t].state == AT_BARRIER) sum += fibers[t].call.value != 0;
            }
            for (size_t t = 0; t < threads; t++) {
                if (fibers[t].state != AT_BARRIER) continue;
                fibers[t].result = sum << 32 | waiting;
                fibers[t].state = READY;
            }
            any = true;
        }
        if (!any) stuck(fibers, threads);
    }
}

inline void run_grid(unsigned blocks, unsigned threads, size_t shared_bytes, uint64_t seed) {
    if (threads == 0 || threads > 1024) fail("a block has 1 to 1024 threads");
    machine.seed = seed;
    if (machine.fibers.size() < threads) machine.fibers.resize(threads);
    machine.grid_size = {blocks, 1, 1};
    machine.block_size = {threads, 1, 1};
    for (unsigned block = 0; block < blocks; block++) {
        machine.block_index = {block, 0, 0};
        machine.dynamic = (unsigned char*)malloc(shared_bytes);
        memset(machine.dynamic, 0xa5, shared_bytes);
        run_block(threads);
        free(machine.dynamic);
    }
}

template <typename T>
uint64_t bits_of(T value) {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable<T>::value, "lanes pass 8 bytes at most");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}
template <typename T>
T value_of(uint64_t bits) {
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

}  // namespace emulation

#define threadIdx (emulation::machine.self->thread)
#define blockIdx (emulation::machine.block_index)
#define blockDim (emulation::machine.block_size)
#define gridDim (emulation::machine.grid_size)
#define warpSize 32

#define EMULATION_LINE int line = __builtin_LINE()

// Barriers and votes of a block.
inline void __syncthreads(EMULATION_LINE) { emulation::meet(emulation::BARRIER, 0, line); }
inline int __syncthreads_count(int p, EMULATION_LINE) {
    return (int)(emulation::meet(emulation::BARRIER, 0, line, p != 0) >> 32);
}
inline int __syncthreads_or(int p, EMULATION_LINE) { return __syncthreads_count(p, line) != 0; }
inline int __syncthreads_and(int p, EMULATION_LINE) {
    uint64_t met = emulation::meet(emulation::BARRIER, 0, line, p != 0);
    return met >> 32 == (met & 0xffffffff);
}

// Collectives of a warp.
inline void __syncwarp(unsigned mask = 0xffffffff, EMULATION_LINE) {
    emulation::meet(emulation::SYNC, mask, line);
}
#define EMULATION_SHUFFLE(name, kind)                                                                   \
    template <typename T>                                                                               \
    T name(unsigned mask, T value, unsigned lane, int width = 32, EMULATION_LINE) {                     \
        uint64_t bits = emulation::bits_of(value);                                                      \
        return emulation::value_of<T>(emulation::meet(emulation::kind, mask, line, bits, lane, width)); \
    }
EMULATION_SHUFFLE(__shfl_sync, SHFL)
EMULATION_SHUFFLE(__shfl_up_sync, SHFL_UP)
EMULATION_SHUFFLE(__shfl_down_sync, SHFL_DOWN)
EMULATION_SHUFFLE(__shfl_xor_sync, SHFL_XOR)
inline unsigned __ballot_sync(unsigned mask, int p, EMULATION_LINE) {
    return (unsigned)emulation::meet(emulation::BALLOT, mask, line, p != 0);
}
inline int __any_sync(unsigned mask, int p, EMULATION_LINE) { return __ballot_sync(mask, p, line) != 0; }
inline int __all_sync(unsigned mask, int p, EMULATION_LINE) { return __ballot_sync(mask, p, line) == mask; }
template <typename T>
unsigned __match_any_sync(unsigned mask, T value, EMULATION_LINE) {
    return (unsigned)emulation::meet(emulation::MATCH_ANY, mask, line, emulation::bits_of(value));
}
template <typename T>
unsigned __match_all_sync(unsigned mask, T value, int* all, EMULATION_LINE) {
    *all = __match_any_sync(mask, value, line) == mask;
    return *all ? mask : 0;
}
#define EMULATION_REDUCE(name, type, expression)                                                 \
    inline type name(unsigned mask, type value, EMULATION_LINE) {                                \
        auto reduce = [](uint64_t left, uint64_t right) -> uint64_t {                            \
            type a = (type)left, b = (type)right;                                                \
            return (uint64_t)(type)(expression);                                                 \
        };                                                                                       \
        return (type)emulation::meet(emulation::REDUCE, mask, line, (uint64_t)value, 0, 32, reduce); \
    }
EMULATION_REDUCE(__reduce_add_sync, unsigned, a + b)
EMULATION_REDUCE(__reduce_add_sync, int, (int)((unsigned)a + (unsigned)b))
EMULATION_REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
EMULATION_REDUCE(__reduce_min_sync, int, a < b ? a : b)
EMULATION_REDUCE(__reduce_max_sync, unsigned, a > b ? a : b)
EMULATION_REDUCE(__reduce_max_sync, int, a > b ? a : b)
EMULATION_REDUCE(__reduce_and_sync, unsigned, a & b)
EMULATION_REDUCE(__reduce_or_sync, unsigned, a | b)
EMULATION_REDUCE(__reduce_xor_sync, unsigned, a ^ b)

// Atomics: the value before.
#define EMULATION_ATOMIC(name, expression)                                       \
    template <typename T, typename V>                                            \
    T name(T* at, V with, EMULATION_LINE) {                                      \
        (void)line;                                                              \
        T old = *at, value = (T)with;                                            \
        *at = (T)(expression);                                                   \
        return old;                                                              \
    }
EMULATION_ATOMIC(atomicAdd, old + value)
EMULATION_ATOMIC(atomicSub, old - value)
EMULATION_ATOMIC(atomicExch, value)
EMULATION_ATOMIC(atomicMin, old < value ? old : value)
EMULATION_ATOMIC(atomicMax, old > value ? old : value)
EMULATION_ATOMIC(atomicAnd, old & value)
EMULATION_ATOMIC(atomicOr, old | value)
EMULATION_ATOMIC(atomicXor, old ^ value)
template <typename T, typename V, typename W>
T atomicCAS(T* at, V expected, W value) {
    T old = *at;
    if (old == (T)expected) *at = (T)value;
    return old;
}

// Memory.
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
template <typename T>
T __ldg(const T* at) { return *at; }
template <typename T>
T __ldcg(const T* at) { return *at; }
template <typename T>
T __ldcs(const T* at) { return *at; }
template <typename T>
void __stcs(T* at, T value) { *at = value; }
template <typename T>
void __stcg(T* at, T value) { *at = value; }

// Bits.
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
    unsigned y = 0;
    for (int i = 0; i < 32; i++) y |= (x >> i & 1) << (31 - i);
    return y;
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31));
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((uint64_t)high << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    uint64_t bytes = (uint64_t)y << 32 | x;
    unsigned result = 0;
    for (int i = 0; i < 4; i++) {
        unsigned choice = selector >> (4 * i) & 15;
        unsigned byte = (unsigned)(bytes >> (8 * (choice & 7))) & 255;
        if (choice & 8) byte = byte & 128 ? 255 : 0;
        result |= byte << (8 * i);
    }
    return result;
}
inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((uint64_t)x * y >> 32); }

namespace emulation {

inline void read_bytes(void* to, size_t bytes) {
    if (bytes > 0 && fread(to, 1, bytes, stdin) != bytes) fail("the launch on stdin is cut short");
}
template <typename T>
T read_value() {
    T value;
    read_bytes(&value, sizeof value);
    return value;
}

// What a launch passes: a buffer, or the bytes of a number.
struct Argument {
    char* buffer = nullptr;
    std::vector<char> bytes;
};

template <typename T>
T decode(const Argument& argument, size_t i) {
    if constexpr (std::is_pointer<T>::value) {
        if (argument.buffer == nullptr) fail("argument " + std::to_string(i) + " is no buffer");
        return (T)argument.buffer;
    } else {
        if (argument.bytes.size() != sizeof(T)) {
            fail("argument " + std::to_string(i) + " has " + std::to_string(argument.bytes.size()) +
                 " bytes, not " + std::to_string(sizeof(T)));
        }
        T value;
        memcpy(&value, argument.bytes.data(), sizeof value);
        return value;
    }
}

struct Kernel {
    const char* name;
    std::function<std::function<void()>(const std::vector<Argument>&)> bind;
};

template <typename... A, size_t... I>
std::function<void()> bind_all(void (*f)(A...), const std::vector<Argument>& arguments,
                               std::index_sequence<I...>) {
    auto decoded = std::make_tuple(decode<A>(arguments[I], I)...);
    return [f, decoded] { std::apply(f, decoded); };
}

template <typename... A>
Kernel kernel(const char* name, void (*f)(A...)) {
    return {name, [f](const std::vector<Argument>& arguments) {
                if (arguments.size() != sizeof...(A)) {
                    fail(std::to_string(arguments.size()) + " arguments for " + std::to_string(sizeof...(A)));
                }
                return bind_all(f, arguments, std::index_sequence_for<A...>());
            }};
}

inline int run_launch(const std::vector<Kernel>& kernels) {
    std::string name(read_value<uint32_t>(), ' ');
    read_bytes(&name[0], name.size());
    auto blocks = read_value<uint32_t>(), threads = read_value<uint32_t>();
    auto shared_bytes = read_value<uint32_t>();
    auto seed = read_value<uint64_t>();
    std::vector<std::pair<char*, size_t>> buffers(read_value<uint32_t>());
    for (auto& buffer : buffers) {
        buffer.second = read_value<uint64_t>();
        // Exactly as many bytes as there are, so that the sanitizer knows where they end.
        if (posix_memalign((void**)&buffer.first, 256, buffer.second) != 0) fail("no memory for buffers");
        read_bytes(buffer.first, buffer.second);
    }
    std::vector<Argument> arguments(read_value<uint32_t>());
    for (auto& argument : arguments) {
        auto buffer = read_value<uint32_t>();
        auto bytes = read_value<uint32_t>();
        if (buffer != 0xffffffff) {
            if (buffer >= buffers.size()) fail("an argument names a buffer that is not there");
            argument.buffer = buffers[buffer].first;
        }
        argument.bytes.resize(bytes);
        read_bytes(argument.bytes.data(), bytes);
    }
    for (const Kernel& kernel : kernels) {
        if (name != kernel.name) continue;
        machine.body = kernel.bind(arguments);
        run_grid(blocks, threads, shared_bytes, seed);
        for (auto& buffer : buffers) fwrite(buffer.first, 1, buffer.second, stdout);
        return fflush(stdout) == 0 ? 0 : 1;
    }
    fail("no kernel " + name);
}

}  // namespace emulation

#define KERNEL(name) emulation::kernel(#name, name)
#define EMULATION_MAIN(...) \
    int main() { return emulation::run_launch({__VA_ARGS__}); }
