// Says which fiber runs next, and when those that wait for each other go on; see cuda.h.
#pragma once
#include "machine.h"

namespace emulation {

// What a collective returns to one lane of a warp.
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
        for (unsigned other = 0; complete && other < lanes; other++) {
            if (!(mask >> other & 1)) continue;
            const Fiber& fiber = warp[other];
            complete = fiber.state == AT_COLLECTIVE && fiber.call.kind == call.kind &&
                       fiber.call.mask == mask;
        }
        if (!complete) continue;
        // All lanes get the same of a vote and of a reduction.
        bool same = call.kind == BALLOT || call.kind == REDUCE || call.kind == SYNC;
        uint64_t first = same ? result_of(warp, lane) : 0;
        for (unsigned other = 0; other < lanes; other++) {
            if (mask >> other & 1) warp[other].result = same ? first : result_of(warp, other);
        }
        for (unsigned other = 0; other < lanes; other++) {
            if (mask >> other & 1) warp[other].state = READY;
        }
        any = true;
    }
    return any;
}

[[noreturn]] inline void stuck() {
    std::string why;
    size_t told = 0;
    for (const auto& block : machine.blocks) {
        if (!block->running) continue;
        why += (why.empty() ? "block " : "\nblock ") + std::to_string(block->index.x) + " is stuck:";
        const auto& fibers = block->fibers;
        for (size_t t = 0; t < machine.block_size.x && told < 64; t++) {
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
    }
    fail(why);
}

inline void begin_block(Block& block, unsigned index) {
    size_t threads = machine.block_size.x;
    block.index = {index, 0, 0};
    block.running = true;
    if (block.fibers.size() < threads) block.fibers.resize(threads);
    block.order.resize(threads);
    for (size_t t = 0; t < threads; t++) {
        Fiber& fiber = block.fibers[t];
        block.order[t] = t;
        fiber.thread = {(unsigned)t, 0, 0};
        fiber.lane = t % 32;
        fiber.block = &block;
        begin(fiber);
    }
}

// Lets the threads of a block run that can, and those meet that wait; says whether any could. With
// a seed about a half of its warps sleep meanwhile.
inline bool step(Block& block) {
    auto& fibers = block.fibers;
    size_t threads = machine.block_size.x;
    bool any = false;
    uint64_t asleep = machine.seed == 0 ? 0 : random();
    if (machine.seed != 0) {
        for (size_t t = threads - 1; t > 0; t--) std::swap(block.order[t], block.order[random() % (t + 1)]);
    }
    for (size_t t : block.order) {
        if (fibers[t].state != READY) continue;
        any = true;
        if (!(asleep >> (t / 32) & 1)) enter(fibers[t]);
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
    if (done == threads) {
        free_shared(block);
        block.running = false;
        return true;
    }
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
    return any;
}

// Runs a grid, of which two blocks are resident, or with a seed two to eight.
inline void run_grid(unsigned blocks, unsigned threads, size_t shared_bytes, uint64_t seed) {
    if (threads == 0 || threads > 1024) fail("a block has 1 to 1024 threads");
    machine.seed = seed;
    machine.random = seed * 0x9e3779b97f4a7c15 | 1;
    // Often or seldom: some races need many steps without a change.
    machine.most_budget = 100 << 2 * (random() % 4);
    machine.shared_bytes = shared_bytes;
    machine.grid_size = {blocks, 1, 1};
    machine.block_size = {threads, 1, 1};
    size_t resident = std::min<size_t>(blocks, seed == 0 ? 2 : 2 + random() % 7);
    while (machine.blocks.size() < resident) machine.blocks.push_back(std::make_unique<Block>());
    unsigned next = 0;
    for (;;) {
        bool any = false;
        size_t first = seed == 0 ? 0 : random() % (resident + 1);
        for (size_t i = 0; i < resident; i++) {
            Block& block = *machine.blocks[(first + i) % resident];
            if (!block.running && next < blocks) begin_block(block, next++);
            if (block.running) any = step(block) || any;
        }
        machine.self = nullptr;
        if (!any) {
            for (const auto& block : machine.blocks) {
                if (block->running) stuck();
            }
            return;
        }
    }
}

}  // namespace emulation
