// Learned weights: exact sums of whole numbers, a window of a query at a time, in shared memory.
//
// Documents are renumbered: every 64th comes first (`SPREAD`), a sample that is spread over
// the collection, then all others. A list, from its place in the arena, a multiple of 256, with W
// windows of 2^IMPACT_BITS such numbers, and of blocks of BLOCK numbers, if it has those:
//   starts  [W + 1] uint2   the chunks, and the units of 32 bytes, before those of each window
//   chunks  768 bytes each, at a multiple of 256
//   rests   of the windows
// A chunk is 256 postings for a warp, of which each lane has eight: u16 [32][8], where the sum of
// the document is, in bytes, and then u8 [32][8], impacts. What is left of a window is in groups
// for up to eight lanes, the same for `lanes` instead of 32, in six units; the last may have fewer.
// An impact above 255 is several postings. The n-th postings of all lanes of a chunk are of
// documents in different banks of shared memory, as far as the window has such documents.
//
// A block takes items, windows of queries, all queries of a window before the next, so that lists
// come from the second-level cache. While most of its warps add up one item and look at its sums,
// the last warp looks up the lists of the next and cuts them into runs of chunks and groups.

#define SPREAD 64u
#define BLOCK 32u
#define CHUNK_BYTES 768u
#define GROUP_UNITS 6u
// Of 128 terms: four groups and a run of chunks each.
#define RUNS 640u
// Of sums: by their highest seven bits.
#define SUM_BINS 1728u
#define IMPACT_WINDOW (1u << IMPACT_BITS)

struct Item {
    u32 r;             // or NONE
    u32 window;
    u32 runs;          // of chunks, from the first place on
    u32 groups;        // from the last place back
};

// What becomes of the sums of an item.
enum Sums {
    // Those of a sample are counted.
    COUNTED,
    // Those that reach the threshold are candidates.
    COMPARED,
    // Of blocks: the greatest of each window of documents is kept.
    BOUNDS,
};

template <bool SAMPLES>
struct ImpactShared {
    u32 sums[IMPACT_WINDOW];
    SHARED_GAP
    // x: a place, of chunks in units of 256 bytes, of a group of 32; y: what an impact of 1 adds,
    // and above bit 16 the number of chunks, or of lanes
    uint2 runs[2][RUNS];
    SHARED_GAP
    Item items[2];
    SHARED_GAP
    u32 bins[SAMPLES ? SUM_BINS : 4];
};
SHARED_IS(ImpactShared<true>, IMPACT_SAMPLE_SHARED_BYTES);
SHARED_IS(ImpactShared<false>, IMPACT_SHARED_BYTES);

__device__ __forceinline__ u32 bin_of(u32 sum) {
    if (sum < 64) return sum;
    u32 high = 31 - (u32)__clz((int)sum);
    return (high - 5) << 6 | (sum >> (high - 6) & 63);
}

__device__ __forceinline__ u32 least_of_bin(u32 bin) {
    return bin < 64 ? bin : (64 | (bin & 63)) << ((bin >> 6) - 1);
}

__device__ __forceinline__ u32 number_of(u32 docid, u32 sampled) {
    return docid % SPREAD == 0 ? docid / SPREAD : sampled + docid - docid / SPREAD - 1;
}

__device__ __forceinline__ u32 docid_of(u32 number, u32 sampled) {
    u32 behind = number - sampled;
    return number < sampled ? number * SPREAD : behind + behind / (SPREAD - 1) + 1;
}

// What a list has in a window.
struct Slice {
    u32 chunk;
    u32 chunks;
    u32 unit;
    u32 units;
};

__device__ __forceinline__ Slice slice_of(const u8* arena, const Term& term, u32 window) {
    const uint2* starts = (const uint2*)(arena + term.place);
    uint2 from = starts[window], to = starts[window + 1];
    return {from.x, to.x - from.x, from.y, to.y - from.y};
}

// The items of a launch: windows from `first` on, each of all records, or those of a list.
struct Items {
    u32 len;
    u32 records;
    u32 first;
    const uint2* list;  // of records and windows, or null
};

// Looks up the next item that has postings, or any of bounds, by a warp. `next` of lane 0 is taken
// already.
template <Sums SUMS>
__device__ __forceinline__ void look_up(ImpactShared<SUMS == COUNTED>& shared, u32 buffer, const u8* arena,
                                        const Term* terms, const Record* records, u32 windows, const Items& items,
                                        u32* work, u32& next) {
    u32 lane = lane_of(), table = (8 * (windows + 1) + 255) / 256;
    uint2* runs = shared.runs[buffer];
    for (;;) {
        u32 item = __shfl_sync(ALL, next, 0);
        if (item >= items.len) {
            if (lane == 0) shared.items[buffer].r = NONE;
            return;
        }
        if (lane == 0) next = gridDim.x + atomicAdd(work, 1);
        u32 r = item % items.records, window = items.first + item / items.records;
        if (items.list != nullptr) {
            r = items.list[item].x;
            window = items.list[item].y;
        }
        const Record& record = records[r];
        const Term* own = terms + record.first_term;
        u32 chunks = 0, groups = 0;
        for (u32 t = lane; t < record.terms; t += 32) {
            Slice slice = slice_of(arena, own[t], window);
            chunks += slice.chunks;
            groups += (slice.units + GROUP_UNITS - 1) / GROUP_UNITS;
        }
        chunks = sum_of_warp(chunks);
        groups = sum_of_warp(groups);
        if (chunks + groups == 0 && SUMS != BOUNDS) continue;
        // Few enough runs, of more chunks each where there are many.
        u32 shift = 0;
        while ((chunks >> shift) + (shift > 0 ? record.terms : 0) + groups > RUNS) shift++;
        u32 runs_before = 0, groups_before = 0;
        for (u32 base = 0; base < record.terms; base += 32) {
            Slice slice = {0, 0, 0, 0};
            Term term;
            term.multiplier = 0;
            if (base + lane < record.terms) {
                term = own[base + lane];
                slice = slice_of(arena, term, window);
            }
            u32 own_runs = (slice.chunks + (1u << shift) - 1) >> shift;
            u32 own_groups = (slice.units + GROUP_UNITS - 1) / GROUP_UNITS;
            u32 runs_upto = sums_of_warp(own_runs), groups_upto = sums_of_warp(own_groups);
            u32 at = runs_before + runs_upto - own_runs, place = (u32)(term.place / 256) + table + 3 * slice.chunk;
            for (u32 done = 0; done < slice.chunks; done += 1u << shift) {
                u32 left = slice.chunks - done, most = 1u << shift;
                runs[at++] = make_uint2(place + 3 * done, term.multiplier | (left < most ? left : most) << 16);
            }
            at = RUNS - 1 - (groups_before + groups_upto - own_groups);
            u64 rests = term.place + 256 * (u64)table + CHUNK_BYTES * (u64)term.postings;
            for (u32 done = 0; done < slice.units; done += GROUP_UNITS) {
                u32 left = slice.units - done, lanes = left >= GROUP_UNITS ? 8 : left * 4 / 3;
                runs[at--] = make_uint2((u32)(rests / 32) + slice.unit + done, term.multiplier | lanes << 16);
            }
            runs_before += __shfl_sync(ALL, runs_upto, 31);
            groups_before += __shfl_sync(ALL, groups_upto, 31);
        }
        if (lane == 0) shared.items[buffer] = {r, window, runs_before, groups_before};
        return;
    }
}

// Adds the eight postings of a lane. The sum of a query fits 32 bits whatever its lists hold.
__device__ __forceinline__ void add_eight(u32* sums, uint4 places, uint2 impacts, u32 multiplier) {
    u8* base = (u8*)sums;
    // The second factor of two, of which one is zero.
    u32 other = multiplier << 16;
    atomicAdd((u32*)(base + (places.x & 0xffff)), __dp2a_lo(multiplier, impacts.x, 0u));
    atomicAdd((u32*)(base + (places.x >> 16)), __dp2a_lo(other, impacts.x, 0u));
    atomicAdd((u32*)(base + (places.y & 0xffff)), __dp2a_hi(multiplier, impacts.x, 0u));
    atomicAdd((u32*)(base + (places.y >> 16)), __dp2a_hi(other, impacts.x, 0u));
    atomicAdd((u32*)(base + (places.z & 0xffff)), __dp2a_lo(multiplier, impacts.y, 0u));
    atomicAdd((u32*)(base + (places.z >> 16)), __dp2a_lo(other, impacts.y, 0u));
    atomicAdd((u32*)(base + (places.w & 0xffff)), __dp2a_hi(multiplier, impacts.y, 0u));
    atomicAdd((u32*)(base + (places.w >> 16)), __dp2a_hi(other, impacts.y, 0u));
}

// The parts of the document's weight among the eight postings of a lane.
__device__ __forceinline__ u32 part_of(const u8* places, const u8* impacts, u32 wanted) {
    uint4 four = *(const uint4*)places;
    u32 words[4] = {four.x, four.y, four.z, four.w}, part = 0;
    for (u32 w = 0; w < 4; w++) {
        if ((words[w] & 0xffff) == wanted) part += impacts[2 * w];
        if (words[w] >> 16 == wanted) part += impacts[2 * w + 1];
    }
    return part;
}

// The score of a document: terms in the query's order, operations rounded. By a warp.
__device__ __forceinline__ float weighted_score(const u8* arena, const Term* own, u32 terms, u32 windows, u32 number) {
    u32 lane = lane_of(), table = (8 * (windows + 1) + 255) / 256 * 256;
    u32 window = number >> IMPACT_BITS, wanted = 4 * (number & (IMPACT_WINDOW - 1));
    float score = 0.0f;
    for (u32 base = 0; base < terms; base += 32) {
        Slice slices = {0, 0, 0, 0};
        if (base + lane < terms) slices = slice_of(arena, own[base + lane], window);
        for (u32 t = 0; t < 32 && base + t < terms; t++) {
            const Term& term = own[base + t];
            u32 chunk = __shfl_sync(ALL, slices.chunk, t), chunks = __shfl_sync(ALL, slices.chunks, t);
            u32 unit = __shfl_sync(ALL, slices.unit, t), units = __shfl_sync(ALL, slices.units, t), part = 0;
            const u8* at = arena + term.place + table;
            const u8* rest = at + CHUNK_BYTES * (u64)term.postings + 32 * (u64)unit;
            for (u32 c = chunk; c < chunk + chunks; c++) {
                const u8* here = at + CHUNK_BYTES * (u64)c;
                part += part_of(here + 16 * lane, here + 512 + 8 * lane, wanted);
            }
            for (u32 done = lane / 8 * GROUP_UNITS; done < units; done += 4 * GROUP_UNITS) {
                u32 left = units - done, lanes = left >= GROUP_UNITS ? 8 : left * 4 / 3, l = lane % 8;
                const u8* here = rest + 32 * done;
                if (l < lanes) part += part_of(here + 16 * l, here + 16 * lanes + 8 * l, wanted);
            }
            if (__ballot_sync(ALL, part > 0) == 0) continue;
            score = __fadd_rn(score, __fmul_rn(term.weight, (float)sum_of_warp(part)));
        }
    }
    return score;
}

// The chunks of a warp, one ahead of those that are added.
struct ChunkReader {
    const u8* at;
    u32 run;
    u32 left;
    u32 multiplier;
    uint4 places;
    uint2 impacts;

    __device__ __forceinline__ bool step(const u8* arena, const uint2* runs, u32 runs_len, u32 warps) {
        if (left == 0) {
            if (run >= runs_len) return false;
            uint2 next = runs[run];
            run += warps;
            at = arena + 256 * (u64)next.x;
            left = next.y >> 16;
            multiplier = next.y & 0xffff;
        }
        places = *(const uint4*)(at + 16 * lane_of());
        impacts = *(const uint2*)(at + 512 + 8 * lane_of());
        at += CHUNK_BYTES;
        left--;
        return true;
    }
};

template <bool SAMPLES>
__device__ __forceinline__ void add_up(ImpactShared<SAMPLES>& shared, u32 buffer, const u8* arena) {
    const u32 WARPS = IMPACT_THREADS / 32 - 1;
    const uint2* runs = shared.runs[buffer];
    u32 warp = threadIdx.x / 32, groups = shared.items[buffer].groups;
    ChunkReader reader;
    reader.run = warp;
    reader.left = 0;
    u32 runs_len = shared.items[buffer].runs;
    bool has = reader.step(arena, runs, runs_len, WARPS);
    while (has) {
        uint4 places = reader.places;
        uint2 impacts = reader.impacts;
        u32 multiplier = reader.multiplier;
        has = reader.step(arena, runs, runs_len, WARPS);
        add_eight(shared.sums, places, impacts, multiplier);
    }
    u32 lane = threadIdx.x % 8;
    for (u32 group = threadIdx.x / 8; group < groups; group += 4 * WARPS) {
        uint2 run = runs[RUNS - 1 - group];
        u32 lanes = run.y >> 16;
        if (lane >= lanes) continue;
        const u8* at = arena + 32 * (u64)run.x;
        uint4 places = *(const uint4*)(at + 16 * lane);
        uint2 impacts = *(const uint2*)(at + 16 * lanes + 8 * lane);
        add_eight(shared.sums, places, impacts, run.y & 0xffff);
    }
}

// `bounds` [records * windows of documents].
template <Sums SUMS>
__device__ __forceinline__ void impact_windows(const u8* arena, const Term* terms, const Record* records, u32 windows,
                                               u32 documents, const Items& items, State* states, u32* bins, u64* keys,
                                               u32* bounds, u32* work) {
    SHARED(ImpactShared<SUMS == COUNTED>, shared);
    const u32 ADDERS = IMPACT_THREADS - 32, OF_BLOCK = IMPACT_WINDOW / BLOCK / 2;
    u32 tid = threadIdx.x, sampled = (documents + SPREAD - 1) / SPREAD;
    u64* pairs = (u64*)shared.sums;
    for (u32 i = tid; i < IMPACT_WINDOW / 2; i += IMPACT_THREADS) pairs[i] = 0;
    for (u32 i = tid; SUMS == COUNTED && i < SUM_BINS; i += IMPACT_THREADS) shared.bins[i] = 0;
    u32 next = blockIdx.x, buffer = 0;
    if (tid >= ADDERS) look_up<SUMS>(shared, 0, arena, terms, records, windows, items, work, next);
    __syncthreads();
    for (; shared.items[buffer].r != NONE; buffer ^= 1) {
        u32 r = shared.items[buffer].r, window = shared.items[buffer].window, first = window << IMPACT_BITS, bar = 1;
        if (tid < ADDERS) {
            if (SUMS == COMPARED) bar = states[r].threshold;
            add_up(shared, buffer, arena);
        } else {
            look_up<SUMS>(shared, buffer ^ 1, arena, terms, records, windows, items, work, next);
        }
        __syncthreads();
        for (u32 w = tid / 32; SUMS == BOUNDS && tid < ADDERS && w < BLOCK; w += ADDERS / 32) {
            u32 greatest = 0, of = (window - items.first) * BLOCK + w;
            for (u32 i = lane_of(); i < OF_BLOCK; i += 32) {
                u64 both = atomicExch(&pairs[w * OF_BLOCK + i], (u64)0);
                u32 low = (u32)both, high = (u32)(both >> 32);
                greatest = low > greatest ? low : greatest;
                greatest = high > greatest ? high : greatest;
            }
            greatest = greatest_of_warp(greatest);
            if (lane_of() == 0 && of < items.first) bounds[r * items.first + of] = greatest;
        }
        for (u32 i = tid; SUMS != BOUNDS && tid < ADDERS && i < IMPACT_WINDOW / 2; i += ADDERS) {
            u64 both = atomicExch(&pairs[i], (u64)0);
            u32 sums[2] = {(u32)both, (u32)(both >> 32)};
            for (u32 n = 0; n < 2; n++) {
                if (sums[n] < bar) continue;
                u32 number = first + 2 * i + n;
                if (SUMS == COUNTED) {
                    if (number < sampled || items.list != nullptr) atomicAdd(&shared.bins[bin_of(sums[n])], 1);
                    continue;
                }
                u32 at = atomicAdd(&states[r].count, 1);
                u64 key = (u64)sums[n] << 32 | (u32)~docid_of(number, sampled);
                if (at < records[r].capacity) keys[records[r].keys + at] = key;
            }
        }
        __syncthreads();
        for (u32 i = tid; SUMS == COUNTED && tid < ADDERS && i < SUM_BINS; i += ADDERS) {
            if (shared.bins[i] > 0) atomicAdd(&bins[r * SUM_BINS + i], shared.bins[i]);
            shared.bins[i] = 0;
        }
    }
}

// The window with the greatest bound, or the first. By a warp.
__device__ __forceinline__ u32 best_window(const u32* bounds, u32 windows) {
    u64 best = 0;
    for (u32 w = lane_of(); w < windows; w += 32) {
        u64 here = (u64)bounds[w] << 32 | (u32)~w;
        if (here > best) best = here;
    }
    return ~(u32)best_of_warp(best);
}

// Appends the windows whose bounds reach the threshold to a list of `len`. By a warp.
__device__ __forceinline__ void live_windows(const u32* bounds, u32 windows, u32 r, u32 threshold, uint2* list,
                                             u32* len) {
    u32 lane = lane_of();
    for (u32 base = 0; base < windows; base += 32) {
        bool is_live = base + lane < windows && bounds[base + lane] >= threshold;
        u32 live = __ballot_sync(ALL, is_live), at = 0;
        if (lane == 0 && live != 0) at = atomicAdd(len, (u32)__popc((int)live));
        at = __shfl_sync(ALL, at, 0) + (u32)__popc((int)(live & ((1u << lane) - 1)));
        if (is_live) list[at] = make_uint2(r, base + lane);
    }
}

// The threshold of a query by the sums of its sample: the least sum of the bin that has the sampled
// document of the rank that is asked for, or 1. By a warp.
__device__ __forceinline__ u32 threshold_of(const u32* bins, u32 rank) {
    const u32 EACH = SUM_BINS / 32;
    u32 lane = lane_of(), sum = 0, top = SUM_BINS - 1 - EACH * lane;
    for (u32 i = 0; i < EACH; i++) sum += bins[top - i];
    u32 upto = sums_of_warp(sum), here = upto - sum, bin = 0;
    for (u32 i = 0; here < rank && upto >= rank; i++) {
        here += bins[top - i];
        bin = top - i;
    }
    u32 reached = __ballot_sync(ALL, upto >= rank && rank > 0);
    bin = __shfl_sync(ALL, bin, reached == 0 ? 0 : (u32)__ffs((int)reached) - 1);
    u32 least = reached == 0 ? 1 : least_of_bin(bin);
    return least > 1 ? least : 1;
}
