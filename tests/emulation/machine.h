// The threads of a block as fibers: they run until a collective, and go on when all that it names have
// come. See cuda.h.
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

struct uint3 { unsigned x, y, z; };

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

}  // namespace emulation
