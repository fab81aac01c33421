// The kernels that turn texts into postings lists: array kernels, each with its twin in
// src/gpu/invert/tests/twin.rs; no block waits for another one. src/gpu/invert/steps.rs has the
// order and the sizes, src/gpu/invert.rs the host's part.
//
// A batch is consecutive pieces of the input: text [bytes], the texts of its documents, each with a
// separator behind it, filled up with separators to whole tiles of 4096 bytes.
//
// 1. invert_count_tokens, invert_write_tokens: where forms begin [tokens].
//    invert_hash_documents: the hash of each document's text.
// 2. invert_find_forms: the slot of each in a hash table of fingerprints; a fingerprint that is not
//    there is a new form. invert_keep_forms: the bytes of new forms, lower-cased, behind those of
//    the others. invert_code_forms: the terms of plain ones, as codes; the host makes the others'.
// 3. invert_check_forms: every form is compared with the bytes of the one that has its slot. One
//    that differs, is long, or has no slot is odd: the host looks at it alone.
// 4. invert_find_terms, invert_tell_terms: codes become numbers of terms, by a hash table of codes.
//    invert_count_terms, invert_write_terms: (term, document) of each token, none of a stop word,
//    several of a form that holds several tokens; the sketches of the pieces. invert_lengths:
//    tokens of each document.
// 5. invert_sort_count, invert_sort_scatter: sorted by term, up to 9 bits at a time; equal terms
//    stay in the order of documents (invert_sort.cuh).
// 6. invert_count_postings, invert_write_postings: runs of equal pairs are postings.
// 7. invert_measure: bytes of postings, as each piece counts them and as lists take them.
//    invert_write_lists, invert_list_starts, invert_move_lasts: the lists of the batch.
//
// invert_scan makes sums of what tiles count, of many with invert_sum_tiles and invert_scan_tiles;
// invert_rehash fills a larger table of forms, invert_fill_table of terms; invert_clear clears.
//
// Launch: one dimension; 256 threads a block, 1024 for those that scan; a block a tile, or a thread
// an item. Results do not depend on the order of threads, except for the numbers of new forms and
// of terms, and the order of odd and foreign ones.

struct Measure {
    BlockScan scan;
    SHARED_GAP
    u32 bytes[MOST_PIECES];
    SHARED_GAP
    u32 postings[MOST_PIECES];
};
SHARED_IS(Measure, MEASURE_SHARED_BYTES);

#define NEW_FORMS 0
#define ODD_TOKENS 1
#define NEW_BYTES 3

// The terms of a form: NONE, a term, or EXPANDED and where its terms stand among the expansions.
#define EXPANDED 0x80000000u
// An odd token, by its number among those.
#define ODD 0x80000000u

// values [words]: become 0; a block has 16 of them for each of its threads.
extern "C" __global__ void invert_clear(u32* values, u32 words_low, u32 words_high) {
    u64 words = (u64)words_high << 32 | words_low, first = (u64)blockIdx.x * 16 * blockDim.x + threadIdx.x;
    for (u32 i = 0; i < 16; i++) {
        u64 at = first + i * blockDim.x;
        if (at < words) values[at] = 0;
    }
}

// values [n]: each becomes the sum of those before it; total [1]: of all. One block.
extern "C" __global__ void invert_scan(u32* values, u32 n, u32* total) {
    SHARED(BlockScan, shared);
    u32 before = 0;
    for (u32 base = 0; base < n; base += blockDim.x * SCAN_ITEMS) {
        u32 first = base + threadIdx.x * SCAN_ITEMS, here[SCAN_ITEMS], sum = 0;
        for (u32 i = 0; i < SCAN_ITEMS; i++) {
            here[i] = first + i < n ? values[first + i] : 0;
            sum += here[i];
        }
        u32 all, at = before + block_scan(shared, sum, all);
        for (u32 i = 0; i < SCAN_ITEMS; i++) {
            if (first + i < n) values[first + i] = at;
            at += here[i];
        }
        before += all;
    }
    if (threadIdx.x == 0) *total = before;
}

// sums [n / 8192]: of each tile of values [n].
extern "C" __global__ void invert_sum_tiles(const u32* __restrict__ values, u32 n, u32* sums) {
    SHARED(BlockScan, shared);
    u32 first = (blockIdx.x * blockDim.x + threadIdx.x) * SCAN_ITEMS, sum = 0, total;
    for (u32 at = first; at < first + SCAN_ITEMS && at < n; at++) sum += values[at];
    block_scan(shared, sum, total);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

// values [n]: as invert_scan leaves them, by the sums [n / 8192] before each tile.
extern "C" __global__ void invert_scan_tiles(u32* values, u32 n, const u32* __restrict__ sums) {
    SHARED(BlockScan, shared);
    u32 first = (blockIdx.x * blockDim.x + threadIdx.x) * SCAN_ITEMS, here[SCAN_ITEMS], sum = 0, total;
    for (u32 i = 0; i < SCAN_ITEMS; i++) {
        here[i] = first + i < n ? values[first + i] : 0;
        sum += here[i];
    }
    u32 at = sums[blockIdx.x] + block_scan(shared, sum, total);
    for (u32 i = 0; i < SCAN_ITEMS; i++) {
        if (first + i < n) values[first + i] = at;
        at += here[i];
    }
}

// tiles [bytes / 4096]: tokens of each tile.
extern "C" __global__ void invert_count_tokens(
    const u8* __restrict__ text, const u32* __restrict__ classes, u32* tiles) {
    SHARED(BlockScan, shared);
    u32 at = (blockIdx.x * blockDim.x + threadIdx.x) * 16, total;
    block_scan(shared, __popc(form_starts(text, at, classes)), total);
    if (threadIdx.x == 0) tiles[blockIdx.x] = total;
}

// starts [tokens]: where each begins, by where those of each tile begin.
extern "C" __global__ void invert_write_tokens(
    const u8* __restrict__ text, const u32* __restrict__ classes, const u32* __restrict__ tiles, u32* starts) {
    SHARED(BlockScan, shared);
    u32 at = (blockIdx.x * blockDim.x + threadIdx.x) * 16, total;
    u32 mask = form_starts(text, at, classes);
    u32 place = tiles[blockIdx.x] + block_scan(shared, __popc(mask), total);
    for (; mask != 0; mask &= mask - 1) starts[place++] = at + (u32)__ffs((int)mask) - 1;
}

// token_forms [tokens]: the slot of each token, or NONE. New forms get numbers behind those that
// are `known`: new_starts, new_lengths, new_places [tokens], of which the first counters[NEW_FORMS]
// are written; the lengths are counters[NEW_BYTES] in all.
extern "C" __global__ void invert_find_forms(
    const u8* __restrict__ text, const u32* __restrict__ classes, const u32* __restrict__ starts, u32 tokens, u64* slots,
    u32 mask, u32 bits, u32 probes, u32* slot_forms, u32 known, u32* counters, u32* token_forms, u32* new_starts,
    u32* new_lengths, u32* new_places) {
    u32 token = blockIdx.x * blockDim.x + threadIdx.x;
    if (token >= tokens) return;
    u32 start = starts[token], slot = NONE;
    u64 fingerprint;
    u32 length = read_form(text, start, classes, bits, fingerprint);
    if (length <= LONGEST_FORM) {
        bool fresh;
        slot = find_slot(slots, mask, probes, fingerprint, fresh);
        if (fresh) {
            u32 number = atomicAdd(&counters[NEW_FORMS], 1u);
            atomicAdd(&counters[NEW_BYTES], length);
            slot_forms[slot] = known + number;
            new_starts[number] = start;
            new_lengths[number] = length;
            new_places[number] = length;
        }
    }
    token_forms[token] = slot;
}

// arena [bytes of all forms]: new ones behind `used` bytes; form_places [forms + 1]: beginnings.
extern "C" __global__ void invert_keep_forms(
    const u8* __restrict__ text, const u32* __restrict__ new_starts, const u32* __restrict__ new_lengths,
    const u32* __restrict__ new_places, u32 count, u32 known, u32 used, u8* arena, u32* form_places) {
    u32 number = blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= count) return;
    u32 from = new_starts[number], to = used + new_places[number], length = new_lengths[number];
    for (u32 i = 0; i < length; i++) arena[to + i] = (u8)lower(text[from + i]);
    form_places[known + number + 1] = to + length;
    if (number == 0) form_places[known] = used;
}

// token_forms [tokens]: slots become forms, or ODD and a number; odd [tokens]: where odd ones
// begin, of which the first counters[ODD_TOKENS] are written.
extern "C" __global__ void invert_check_forms(
    const u8* __restrict__ text, const u32* __restrict__ classes, const u32* __restrict__ starts, u32 tokens,
    const u32* __restrict__ slot_forms, const u32* __restrict__ form_places, const u8* __restrict__ arena, u32* counters,
    u32* token_forms, u32* odd) {
    u32 token = blockIdx.x * blockDim.x + threadIdx.x;
    if (token >= tokens) return;
    u32 start = starts[token], slot = token_forms[token];
    u32 form = slot == NONE ? NONE : slot_forms[slot];
    if (form != NONE) {
        u32 place = form_places[form];
        if (is_form(text, start, classes, arena + place, form_places[form + 1] - place)) {
            token_forms[token] = form;
            return;
        }
    }
    u32 number = atomicAdd(&counters[ODD_TOKENS], 1u);
    odd[number] = start;
    token_forms[token] = ODD | number;
}

// What a token means: of a form form_terms [forms], of an odd one odd_terms [odd].
__device__ __forceinline__ uint2 meaning(
    u32 form, const uint2* __restrict__ form_terms, const uint2* __restrict__ odd_terms) {
    return form & ODD ? odd_terms[form & ~ODD] : form_terms[form];
}

__device__ __forceinline__ u32 terms_of(uint2 meaning, const u32* __restrict__ expansions) {
    if (meaning.x == NONE) return 0;
    return meaning.x & EXPANDED ? expansions[(meaning.x & ~EXPANDED) + 1] : 1;
}

// tiles [tokens / 2048]: terms of each tile of tokens.
extern "C" __global__ void invert_count_terms(
    const u32* __restrict__ token_forms, u32 tokens, const uint2* __restrict__ form_terms,
    const uint2* __restrict__ odd_terms, const u32* __restrict__ expansions, u32* tiles) {
    SHARED(BlockScan, shared);
    u32 tile = blockIdx.x * ITEMS * blockDim.x + threadIdx.x, count = 0, total;
    for (u32 i = 0; i < ITEMS; i++) {
        u32 token = tile + i * blockDim.x;
        if (token < tokens) count += terms_of(meaning(token_forms[token], form_terms, odd_terms), expansions);
    }
    block_scan(shared, count, total);
    if (threadIdx.x == 0) tiles[blockIdx.x] = total;
}

// A member of a piece's sketch: register << 8 | rank; rank 0 is none.
__device__ __forceinline__ void add_member(u32* sketch, u32 member) {
    u32 rank = member & 255;
    u32* at = sketch + (member >> 8);
    if (rank > __ldcg(at)) atomicMax(at, rank);
}

// token_places [tokens + 1]: where the terms of each token begin; keys [terms], values [terms]:
// terms and documents; sketches [pieces * 4096].
extern "C" __global__ void invert_write_terms(
    const u32* __restrict__ token_forms, u32 tokens, const uint2* __restrict__ form_terms,
    const uint2* __restrict__ odd_terms, const u32* __restrict__ expansions, const u32* __restrict__ tiles,
    const u32* __restrict__ starts, const u32* __restrict__ document_starts, u32 documents,
    const u32* __restrict__ piece_starts, u32 pieces, u32* token_places, u32* keys, u32* values, u32* sketches) {
    SHARED(BlockScan, shared);
    // A warp has 256 neighbouring tokens, 32 at a time.
    u32 first = blockIdx.x * ITEMS * blockDim.x + threadIdx.x / 32 * ITEMS * 32, lane = lane_of(), all = 0, total;
    uint2 means[ITEMS];
    u32 upto[ITEMS];
    for (u32 i = 0; i < ITEMS; i++) {
        u32 token = first + 32 * i + lane;
        means[i] = {NONE, 0};
        if (token < tokens) means[i] = meaning(token_forms[token], form_terms, odd_terms);
        upto[i] = all + sums_of_warp(terms_of(means[i], expansions));
        all = __shfl_sync(ALL, upto[i], 31);
    }
    u32 before = __shfl_sync(ALL, tiles[blockIdx.x] + block_scan(shared, lane == 0 ? all : 0, total), 0);
    if (first >= tokens) return;
    // The documents and pieces of all of these.
    u32 last = min(first + 32 * ITEMS, tokens) - 1;
    u32 first_document = part_of(document_starts, documents, starts[first]);
    u32 some = part_of(document_starts, documents, starts[last]) - first_document + 1;
    u32 first_piece = part_of(piece_starts, pieces, first_document);
    u32 some_pieces = part_of(piece_starts, pieces, first_document + some - 1) - first_piece + 1;
    for (u32 i = 0; i < ITEMS; i++) {
        u32 token = first + 32 * i + lane;
        if (token >= tokens) break;
        u32 document = first_document + part_of(document_starts + first_document, some, starts[token]);
        u32* sketch = sketches + 4096 * (first_piece + part_of(piece_starts + first_piece, some_pieces, document));
        uint2 here = means[i];
        u32 place = before + upto[i] - terms_of(here, expansions);
        token_places[token] = place;
        if (token == tokens - 1) token_places[tokens] = before + upto[i];
        if (here.x == NONE) continue;
        if (!(here.x & EXPANDED)) {
            keys[place] = here.x;
            values[place] = document;
            add_member(sketch, here.y);
            continue;
        }
        const u32* at = expansions + (here.x & ~EXPANDED);
        u32 parts = at[0];
        for (u32 i = 0; i < parts; i++) {
            u32 term = at[2 + 2 * i];
            add_member(sketch, at[3 + 2 * i]);
            if (term == NONE) continue;
            keys[place] = term;
            values[place++] = document;
        }
    }
}

// lengths [documents]: indexed tokens of each.
extern "C" __global__ void invert_lengths(
    const u32* __restrict__ starts, u32 tokens, const u32* __restrict__ document_starts, u32 documents,
    const u32* __restrict__ token_places, u32* lengths) {
    u32 document = blockIdx.x * blockDim.x + threadIdx.x;
    if (document >= documents) return;
    u32 from = find(starts, 0, tokens, document_starts[document]);
    u32 to = find(starts, 0, tokens, document_starts[document + 1]);
    lengths[document] = token_places[to] - token_places[from];
}

__device__ __forceinline__ bool begins_posting(const u32* __restrict__ keys, const u32* __restrict__ values, u32 at) {
    return at == 0 || keys[at] != keys[at - 1] || values[at] != values[at - 1];
}

// tiles [n / 2048]: postings that begin in each tile of sorted pairs.
extern "C" __global__ void invert_count_postings(
    const u32* __restrict__ keys, const u32* __restrict__ values, u32 n, u32* tiles) {
    SHARED(BlockScan, shared);
    u32 tile = blockIdx.x * ITEMS * blockDim.x + threadIdx.x, count = 0, total;
    for (u32 i = 0; i < ITEMS; i++) {
        u32 at = tile + i * blockDim.x;
        count += at < n && begins_posting(keys, values, at);
    }
    block_scan(shared, count, total);
    if (threadIdx.x == 0) tiles[blockIdx.x] = total;
}

// starts [postings + 1]: where each begins among the pairs; terms, documents [postings].
extern "C" __global__ void invert_write_postings(
    const u32* __restrict__ keys, const u32* __restrict__ values, u32 n, const u32* __restrict__ tiles, u32* starts,
    u32* terms, u32* documents) {
    SHARED(BlockScan, shared);
    // A warp has 256 neighbouring pairs, 32 at a time.
    u32 first = blockIdx.x * ITEMS * blockDim.x + threadIdx.x / 32 * ITEMS * 32 + lane_of(), count = 0, total;
    u32 begins[ITEMS];
    for (u32 i = 0; i < ITEMS; i++) {
        u32 at = first + 32 * i;
        begins[i] = __ballot_sync(ALL, at < n && begins_posting(keys, values, at));
        count += __popc(begins[i]);
    }
    u32 before = tiles[blockIdx.x] + block_scan(shared, lane_of() == 0 ? count : 0, total);
    before = __shfl_sync(ALL, before, 0);
    for (u32 i = 0; i < ITEMS; i++) {
        u32 at = first + 32 * i, place = before + __popc(begins[i] & ((1u << lane_of()) - 1));
        if (begins[i] >> lane_of() & 1) {
            starts[place] = at;
            terms[place] = keys[at];
            documents[place] = values[at];
        }
        before += __popc(begins[i]);
        if (at == n - 1) starts[before] = n;
    }
}

// tiles [postings / 2048]: bytes of each tile in the lists. piece_bytes, piece_postings [pieces]:
// what a piece counts, with 4 bytes for a term's first posting there.
extern "C" __global__ void invert_measure(
    const u32* __restrict__ terms, const u32* __restrict__ documents, const u32* __restrict__ starts, u32 n,
    const u32* __restrict__ lasts, u32 first_docid, const u32* __restrict__ piece_starts, u32 pieces, u32* tiles,
    u64* piece_bytes, u64* piece_postings) {
    SHARED(Measure, shared);
    for (u32 piece = threadIdx.x; piece < pieces; piece += blockDim.x) {
        shared.bytes[piece] = 0;
        shared.postings[piece] = 0;
    }
    __syncthreads();
    Postings postings = {terms, documents, starts, lasts, first_docid};
    u32 first = (blockIdx.x * blockDim.x + threadIdx.x) * ITEMS, bytes = 0, total;
    for (u32 at = first; at < first + ITEMS && at < n; at++) {
        u32 tf = postings.tf(at), here = posting_bytes(postings.gap(at), tf);
        bytes += here;
        u32 piece = part_of(piece_starts, pieces, documents[at]);
        bool follows = !postings.begins_list(at) && documents[at - 1] >= piece_starts[piece];
        atomicAdd(&shared.bytes[piece], follows ? here : 4u);
        atomicAdd(&shared.postings[piece], 1u);
    }
    block_scan(shared.scan, bytes, total);
    if (threadIdx.x == 0) tiles[blockIdx.x] = total;
    for (u32 piece = threadIdx.x; piece < pieces; piece += blockDim.x) {
        if (shared.postings[piece] == 0) continue;
        atomicAdd(&piece_bytes[piece], (u64)shared.bytes[piece]);
        atomicAdd(&piece_postings[piece], (u64)shared.postings[piece]);
    }
}

// lists [bytes]: the postings; places [postings + 1]: where each begins.
extern "C" __global__ void invert_write_lists(
    const u32* __restrict__ terms, const u32* __restrict__ documents, const u32* __restrict__ starts, u32 n,
    const u32* __restrict__ lasts, u32 first_docid, const u32* __restrict__ tiles, u32* places, u8* lists) {
    SHARED(BlockScan, shared);
    Postings postings = {terms, documents, starts, lasts, first_docid};
    u32 first = (blockIdx.x * blockDim.x + threadIdx.x) * ITEMS, bytes = 0, total;
    for (u32 at = first; at < first + ITEMS && at < n; at++) bytes += posting_bytes(postings.gap(at), postings.tf(at));
    u32 place = tiles[blockIdx.x] + block_scan(shared, bytes, total);
    for (u32 at = first; at < first + ITEMS && at < n; at++) {
        u32 gap = postings.gap(at), tf = postings.tf(at);
        places[at] = place;
        place = (u32)(put_posting(lists + place, gap, tf) - lists);
        if (at == n - 1) places[n] = place;
    }
}

// list_starts [count + 1]: where the list of each term begins, and the end of all.
extern "C" __global__ void invert_list_starts(
    const u32* __restrict__ terms, u32 n, const u32* __restrict__ places, u32 count, u32* list_starts) {
    u32 term = blockIdx.x * blockDim.x + threadIdx.x;
    if (term <= count) list_starts[term] = places[find(terms, 0, n, term)];
}

// lasts [terms]: moves on to behind the batch.
extern "C" __global__ void invert_move_lasts(
    const u32* __restrict__ terms, const u32* __restrict__ documents, u32 n, u32 first_docid, u32* lasts) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < n && (at == n - 1 || terms[at + 1] != terms[at])) lasts[terms[at]] = first_docid + documents[at] + 1;
}

// Puts a table of n slots into a larger one, which is empty; a form that finds no slot is left out.
extern "C" __global__ void invert_rehash(
    const u64* __restrict__ from, const u32* __restrict__ from_forms, u32 n, u64* slots, u32 mask, u32 probes,
    u32* slot_forms) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n || from[at] == 0) return;
    bool fresh;
    u32 slot = find_slot(slots, mask, probes, from[at], fresh);
    if (slot != NONE) slot_forms[slot] = from_forms[at];
}
