// The threads of several blocks as fibers: they run until a collective, and go on when all that it
// names have come; and they change in the midst of their code as well. See cuda.h.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

struct uint3 { unsigned x, y, z; };

// How many branches the running fiber takes until another one may run. The compiler calls
// __sanitizer_cov_trace_pc at each of them (-fsanitize-coverage=trace-pc).
extern "C" int emulation_budget;
inline int emulation_budget __attribute__((used)) = INT_MAX;
extern "C" void emulation_preempt();

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

struct Block;

struct Fiber {
    State state = DONE;
    uint3 thread;
    unsigned lane = 0;
    Block* block = nullptr;
    Call call;
    uint64_t result = 0;
    char* stack = nullptr;
    void* saved = nullptr;
#if defined(__SANITIZE_ADDRESS__)
    void* fake = nullptr;
#endif
#if !defined(__x86_64__)
    ucontext_t context;
#endif
};

// A block that is resident.
struct Block {
    uint3 index;
    std::vector<Fiber> fibers;
    std::vector<size_t> order;
    // Dynamic shared memory, made when a thread first asks for it.
    unsigned char* shared = nullptr;
    size_t shared_bytes = 0;
    bool running = false;
};

struct Machine {
    std::vector<std::unique_ptr<Block>> blocks;
    Fiber* self = nullptr;
    std::function<void()> body;
    uint3 block_size, grid_size;
    size_t shared_bytes = 0;
    uint64_t seed = 0, random = 1, most_budget = 1;
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

inline uint64_t random() {
    machine.random ^= machine.random << 13;
    machine.random ^= machine.random >> 7;
    machine.random ^= machine.random << 17;
    return machine.random;
}

// While one of these lives no other fiber runs: what the emulation does is one step.
struct Whole {
    int kept = emulation_budget;
    Whole() { emulation_budget = INT_MAX; }
    ~Whole() { emulation_budget = kept; }
};

// Branches until the next change: in order there are changes too, so that a loop which waits for
// another thread ends.
inline int next_budget() { return machine.seed == 0 ? 4000 : 1 + (int)(random() % machine.most_budget); }

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

.globl __sanitizer_cov_trace_pc
.type __sanitizer_cov_trace_pc, @function
__sanitizer_cov_trace_pc:
    subl $1, emulation_budget(%rip)
    js 1f
    ret
1:
    movl $0x7fffffff, emulation_budget(%rip)
    jmp emulation_preempt
.size __sanitizer_cov_trace_pc, . - __sanitizer_cov_trace_pc
)");
#else
#if defined(__clang__)
__attribute__((no_sanitize("coverage")))
#else
__attribute__((no_sanitize_coverage))
#endif
extern "C" inline __attribute__((used)) void __sanitizer_cov_trace_pc() {
    if (--emulation_budget >= 0) return;
    emulation_budget = INT_MAX;
    emulation_preempt();
}
#endif

// From the running fiber to the scheduler, and back when it goes on. Nothing else runs in between
// unless this says so: the budget is whole on both sides.
inline void leave(bool for_ever) {
    emulation_budget = INT_MAX;
    Fiber* self = machine.self;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(for_ever ? nullptr : &self->fake, machine.own_stack, machine.own_bytes);
#endif
#if defined(__x86_64__)
    emulation_switch(&self->saved, machine.saved);
#else
    swapcontext(&self->context, &machine.context);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(self->fake, nullptr, nullptr);
#endif
    (void)for_ever;
}

inline void entry() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &machine.own_stack, &machine.own_bytes);
#endif
    emulation_budget = next_budget();
    machine.body();
    emulation_budget = INT_MAX;
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

// Another fiber may run here: with a seed, in one of four times.
inline void may_change() {
    if (machine.seed == 0 || machine.self == nullptr) return;
    emulation_budget = INT_MAX;
    if (random() % 4 == 0) leave(false);
    emulation_budget = next_budget();
}

// Another fiber runs here, for this one waits for others.
inline void change() {
    leave(false);
    emulation_budget = next_budget();
}

// Waits at a collective and returns what it returns to this lane.
inline uint64_t meet(Kind kind, unsigned mask, int line, uint64_t value = 0, unsigned lane = 0,
                     unsigned width = 32, uint64_t (*reduce)(uint64_t, uint64_t) = nullptr) {
    emulation_budget = INT_MAX;
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
    uint64_t result = self->result;
    emulation_budget = next_budget();
    return result;
}

// Dynamic shared memory.

// Bytes that nobody may touch, between the arrays of a struct: SHARED_GAP.
struct Gap {
    inline static size_t made = 0;
    unsigned char bytes[64];
    Gap() {
        made += 1;
#if defined(__SANITIZE_ADDRESS__)
        ASAN_POISON_MEMORY_REGION(bytes, sizeof bytes);
#endif
    }
};

// What nobody wrote is no zero, and with a seed not the same twice.
inline void spoil(unsigned char* bytes, size_t count) {
    for (size_t i = 0; i < count; i++) bytes[i] = machine.seed == 0 ? 0xa5 : (unsigned char)random();
}

inline unsigned char* shared_bytes(size_t more) {
    Block* block = machine.self->block;
    if (block->shared == nullptr) {
        block->shared_bytes = machine.shared_bytes + more;
        if (posix_memalign((void**)&block->shared, 128, block->shared_bytes) != 0) fail("no memory");
        spoil(block->shared, block->shared_bytes);
    }
    return block->shared;
}

template <typename T>
T* shared_array() {
    Whole step;
    return (T*)shared_bytes(0);
}

template <typename T>
T& shared_struct() {
    Whole step;
    static_assert(alignof(T) <= 16, "shared memory begins at a multiple of 16 bytes");
    static size_t gaps = SIZE_MAX;
    bool first = machine.self->block->shared == nullptr;
    if (gaps == SIZE_MAX) {
        size_t before = Gap::made;
        auto trial = std::make_unique<T>();
        gaps = (Gap::made - before) * sizeof(Gap);
#if defined(__SANITIZE_ADDRESS__)
        ASAN_UNPOISON_MEMORY_REGION(trial.get(), sizeof(T));
#endif
    }
    if (machine.shared_bytes < sizeof(T) - gaps) {
        fail("the kernel has a struct of " + std::to_string(sizeof(T) - gaps) +
             " bytes in shared memory, and is launched with " + std::to_string(machine.shared_bytes));
    }
    unsigned char* bytes = shared_bytes(gaps);
    return first ? *new (bytes) T : *(T*)bytes;
}

inline void free_shared(Block& block) {
    if (block.shared == nullptr) return;
#if defined(__SANITIZE_ADDRESS__)
    ASAN_UNPOISON_MEMORY_REGION(block.shared, block.shared_bytes);
#endif
    free(block.shared);
    block.shared = nullptr;
}

}  // namespace emulation

extern "C" inline __attribute__((used)) void emulation_preempt() {
    if (emulation::machine.self == nullptr) return;
    emulation::change();
}
