// Makes the terms of forms. A form of at most 16 bytes of a to z and 0 to 9 is a token as it
// stands; its stem by Snowball's English stemmer is that of src/text/english.rs, whose steps have
// the same numbers. A term of at most 12 such bytes has a code, which is all of it
// (src/dictionary/strings/codes.rs): terms with equal codes are equal. The host makes the terms of
// all other forms, which are *foreign*, and says their codes, or codes of its own of terms that
// have none.

// The code of a form's term, and what the form adds to a sketch. A code below 2^32 is of no term:
// it stands for what kernels that count find; FOREIGN and a number stand for what the host says of
// that foreign form.
struct __align__(16) Coded {
    u64 code;
    u64 member;
};
#define FOREIGN (1ull << 32)
#define NO_TERM 0xffffffffull

#define FOREIGN_FORMS 4
#define FOREIGN_BYTES 5

// The last bytes of a word, the last one lowest.
__device__ constexpr u64 letters(const char* word) {
    u64 number = 0;
    for (; *word != 0; word++) number = number << 8 | (u8)*word;
    return number;
}

// The first bytes of a word, the first one lowest.
__device__ constexpr u64 beginning(const char* word) {
    u64 number = 0;
    for (u32 i = 0; word[i] != 0; i++) number |= (u64)(u8)word[i] << 8 * i;
    return number;
}

// Whether a word ends with, or is, these letters, seven at most.
#define ENDS(suffix) ends_with<letters(suffix)>(sizeof(suffix) - 1)
#define WHOLE(word) is_whole<letters(word)>()

// A word of at most 16 letters, while it is stemmed.
struct Word {
    // Its letters, the last one lowest.
    u64 high;
    u64 low;
    u32 length;
    // Bit i: letter i is a vowel; bits from `length` on mean nothing.
    u32 vowels;
    u32 r1;
    u32 r2;

    template <u64 suffix>
    __device__ __forceinline__ bool ends_with(u32 bytes) const {
        return (low & ((1ull << 8 * bytes) - 1)) == suffix;
    }
    template <u64 word>
    __device__ __forceinline__ bool is_whole() const {
        return low == word;
    }
    __device__ __forceinline__ u32 last() const { return (u32)low & 255; }
    __device__ __forceinline__ u32 last_but_one() const { return (u32)low >> 8 & 255; }
    __device__ __forceinline__ bool has_vowel_before(u32 end) const { return (vowels & ((1u << end) - 1)) != 0; }

    // Cuts off `count` letters, seven at most.
    __device__ __forceinline__ void drop(u32 count) {
        if (count == 0) return;
        low = low >> 8 * count | high << (64 - 8 * count);
        high >>= 8 * count;
        length -= count;
    }
    __device__ __forceinline__ void push(u32 letter) {
        high = high << 8 | low >> 56;
        low = low << 8 | letter;
        vowels &= ~(1u << length);
        if (letter != 'l') vowels |= 1u << length;
        length++;
    }
    // The last letter becomes e, i or l.
    __device__ __forceinline__ void end_in(u32 letter) {
        drop(1);
        push(letter);
    }
    // Cuts off letters if a suffix lies behind `region`.
    __device__ __forceinline__ void cut(u32 region, u32 suffix, u32 count) {
        if (length - suffix >= region) drop(count);
    }
    __device__ __forceinline__ void cut_to_e(u32 region, u32 suffix, u32 count) {
        if (length - suffix >= region) {
            drop(count);
            end_in('e');
        }
    }
    // `end` is the length, or one less.
    __device__ __forceinline__ bool is_short_syllable_before(u32 end) const {
        if (end < 2) return false;
        if (end == 2) return (vowels & 3) == 1;
        u32 letter = (u32)(low >> 8 * (length - end)) & 255;
        return (vowels >> (end - 3) & 7) == 2 && letter != 'w' && letter != 'x' && letter != 'y';
    }
    __device__ __forceinline__ bool is_double() const {
        u32 letter = last();
        return letter == last_but_one()
            && (letter == 'b' || letter == 'd' || letter == 'f' || letter == 'g' || letter == 'm' || letter == 'n'
                || letter == 'p' || letter == 'r' || letter == 't');
    }

    // `first` has the first bytes, the first one lowest.
    __device__ __forceinline__ void find_regions(u64 first) {
        u32 ys = 0;
        vowels = 0;
        for (u32 i = 0; i < length; i++) {
            u32 at = length - 1 - i, letter = (u32)((at < 8 ? low >> 8 * at : high >> 8 * (at - 8)) & 255);
            bool is_vowel = letter == 'a' || letter == 'e' || letter == 'i' || letter == 'o' || letter == 'u';
            vowels |= (u32)is_vowel << i;
            ys |= (u32)(letter == 'y') << i;
        }
        for (u32 rest = ys & ~1u; rest != 0; rest &= rest - 1) {
            u32 y = rest & (0u - rest);
            if ((vowels & y >> 1) == 0) vowels |= y;
        }
        u32 borders = ~vowels & vowels << 1 & ((1u << length) - 1);
        r1 = after_border(borders, 0);
        if ((first & 0xffffffffffull) == beginning("gener") || (first & 0xffffffffffull) == beginning("arsen")) r1 = 5;
        if ((first & 0xffffffffffffull) == beginning("commun")) r1 = 6;
        r2 = after_border(borders, r1);
    }
    __device__ __forceinline__ u32 after_border(u32 borders, u32 from) const {
        u32 border = (u32)__ffs((int)(borders >> from << from));
        return border == 0 ? length : border;
    }

    // Words with stems of their own.
    __device__ __forceinline__ bool is_exception() {
        if (length > 6) return false;
        u64 stem = 0;
        switch (last()) {
            case 'e': stem = WHOLE("howe") ? low : 0; break;
            case 'g':
                if (WHOLE("dying")) stem = letters("die");
                if (WHOLE("lying")) stem = letters("lie");
                if (WHOLE("tying")) stem = letters("tie");
                break;
            case 's':
                if (WHOLE("andes") || WHOLE("atlas") || WHOLE("bias") || WHOLE("cosmos") || WHOLE("news")) stem = low;
                if (WHOLE("skies")) stem = letters("sky");
                if (WHOLE("skis")) stem = letters("ski");
                break;
            case 'y':
                if (WHOLE("early")) stem = letters("earli");
                if (WHOLE("gently")) stem = letters("gentl");
                if (WHOLE("idly")) stem = letters("idl");
                if (WHOLE("only")) stem = letters("onli");
                if (WHOLE("singly")) stem = letters("singl");
                if (WHOLE("sky")) stem = low;
                if (WHOLE("ugly")) stem = letters("ugli");
                break;
        }
        if (stem == 0) return false;
        low = stem;
        length = 8 - (u32)__clzll((long long)stem) / 8;
        return true;
    }

    __device__ __forceinline__ void step_1a() {
        if (ENDS("sses")) return drop(2);
        if (ENDS("ies") || ENDS("ied")) return drop(length > 4 ? 2 : 1);
        if (last() != 's' || ENDS("us") || ENDS("ss")) return;
        if (has_vowel_before(length - 2)) drop(1);
    }
    // A participle's ending goes if there is a vowel before it.
    __device__ __forceinline__ void take_off(u32 suffix) {
        if (!has_vowel_before(length - suffix)) return;
        drop(suffix);
        if (ENDS("at") || ENDS("bl") || ENDS("iz")) return push('e');
        if (is_double()) return drop(1);
        if (length == r1 && is_short_syllable_before(length)) push('e');
    }
    __device__ __forceinline__ void step_1b() {
        switch (last()) {
            case 'd':
                if (ENDS("eed")) {
                    if (!WHOLE("exceed") && !WHOLE("proceed") && !WHOLE("succeed")) cut(r1, 3, 1);
                } else if (ENDS("ed")) {
                    take_off(2);
                }
                break;
            case 'g':
                if (!ENDS("ing") || WHOLE("canning") || WHOLE("earring") || WHOLE("herring") || WHOLE("inning")
                    || WHOLE("outing")) {
                    break;
                }
                take_off(3);
                break;
            case 'y':
                if (ENDS("eedly")) cut(r1, 5, 3);
                else if (ENDS("edly")) take_off(4);
                else if (ENDS("ingly")) take_off(5);
                break;
        }
    }
    __device__ __forceinline__ void step_1c() {
        if (last() == 'y' && length > 2 && (vowels >> (length - 2) & 1) == 0) end_in('i');
    }
    __device__ __forceinline__ void step_2_i() {
        u32 before = (u32)low >> 16 & 255;
        switch (last_but_one()) {
            case 'c':
                if (ENDS("anci") || ENDS("enci")) cut_to_e(r1, 4, 0);
                break;
            case 'g':
                if (ENDS("logi")) cut(r1, 3, 1);
                break;
            case 'l':
                if (ENDS("abli")) cut_to_e(r1, 4, 0);
                else if (ENDS("bli")) cut_to_e(r1, 3, 0);
                else if (ENDS("lessli")) cut(r1, 6, 2);
                else if (ENDS("entli") || ENDS("fulli") || ENDS("ousli")) cut(r1, 5, 2);
                else if (ENDS("alli")) cut(r1, 4, 2);
                else if (before == 'c' || before == 'd' || before == 'e' || before == 'g' || before == 'h' || before == 'k'
                    || before == 'm' || before == 'n' || before == 'r' || before == 't') {
                    cut(r1, 2, 2);
                }
                break;
            case 't':
                if (ENDS("aliti")) {
                    cut(r1, 5, 3);
                } else if (ENDS("biliti") && length - 6 >= r1) {
                    drop(4);
                    end_in('l');
                    push('e');
                } else if (ENDS("iviti")) {
                    cut_to_e(r1, 5, 2);
                }
                break;
        }
    }
    __device__ __forceinline__ void step_2() {
        switch (last()) {
            case 'i': step_2_i(); break;
            case 'l':
                if (ENDS("ational")) cut_to_e(r1, 7, 4);
                else if (ENDS("tional")) cut(r1, 6, 2);
                break;
            case 'm':
                if (ENDS("alism")) cut(r1, 5, 3);
                break;
            case 'n':
                if (ENDS("ization")) cut_to_e(r1, 7, 4);
                else if (ENDS("ation")) cut_to_e(r1, 5, 2);
                break;
            case 'r':
                if (ENDS("izer")) cut(r1, 4, 1);
                else if (ENDS("ator")) cut_to_e(r1, 4, 1);
                break;
            case 's':
                if (ENDS("fulness") || ENDS("iveness") || ENDS("ousness")) cut(r1, 7, 4);
                break;
        }
    }
    __device__ __forceinline__ void step_3() {
        switch (last()) {
            case 'e':
                if (ENDS("alize")) cut(r1, 5, 3);
                else if (ENDS("ative")) cut(r2, 5, 5);
                else if (ENDS("icate")) cut(r1, 5, 3);
                break;
            case 'i':
                if (ENDS("iciti")) cut(r1, 5, 3);
                break;
            case 'l':
                if (ENDS("ational")) cut_to_e(r1, 7, 4);
                else if (ENDS("tional")) cut(r1, 6, 2);
                else if (ENDS("ical")) cut(r1, 4, 2);
                else if (ENDS("ful")) cut(r1, 3, 3);
                break;
            case 's':
                if (ENDS("ness")) cut(r1, 4, 4);
                break;
        }
    }
    __device__ __forceinline__ void step_4() {
        u32 suffix = 0;
        switch (last()) {
            case 'c': suffix = ENDS("ic") ? 2 : 0; break;
            case 'e':
                if (ENDS("able") || ENDS("ance") || ENDS("ence") || ENDS("ible")) suffix = 4;
                else if (ENDS("ate") || ENDS("ive") || ENDS("ize")) suffix = 3;
                break;
            case 'i': suffix = ENDS("iti") ? 3 : 0; break;
            case 'l': suffix = ENDS("al") ? 2 : 0; break;
            case 'm': suffix = ENDS("ism") ? 3 : 0; break;
            case 'n': suffix = ENDS("sion") || ENDS("tion") ? 3 : 0; break;
            case 'r': suffix = ENDS("er") ? 2 : 0; break;
            case 's': suffix = ENDS("ous") ? 3 : 0; break;
            case 't': suffix = ENDS("ement") ? 5 : ENDS("ment") ? 4 : ENDS("ant") || ENDS("ent") ? 3 : 0; break;
        }
        if (suffix > 0) cut(r2, suffix, suffix);
    }
    __device__ __forceinline__ void step_5() {
        if (last() == 'e') cut(is_short_syllable_before(length - 1) ? r2 : r1, 1, 1);
        else if (ENDS("ll")) cut(r2, 1, 1);
    }
    __device__ __forceinline__ void stem(u64 first) {
        if (length < 3 || is_exception()) return;
        find_regions(first);
        step_1a();
        step_1b();
        step_1c();
        // No suffix of these steps has fewer than two letters.
        if (length >= r1 + 2) {
            step_2();
            step_3();
            if (length >= r2 + 2) step_4();
        }
        step_5();
    }

    // The code of at most 12 letters: the first three are the highest 16 bits.
    __device__ __forceinline__ u64 code() const {
        u64 code = 0;
        u32 three = 0;
        for (u32 i = 0; i < 12; i++) {
            u32 at = length - 1 - i, value = 0;
            if (i < length) {
                u32 letter = (u32)((at < 8 ? low >> 8 * at : high >> 8 * (at - 8)) & 255);
                value = letter < 'a' ? letter - '0' + 1 : letter - 'a' + 11;
            }
            three = 37 * three + value;
            if (i % 3 == 2) {
                code = code << 16 | three;
                three = 0;
            }
        }
        return code;
    }
};

// Every bit depends on all, and different numbers stay different
// (src/dictionary/device/members.rs).
__device__ __forceinline__ u64 scatter(u64 hash) {
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdull;
    hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53ull;
    return hash ^ hash >> 33;
}

// What a form of 16 bytes, first lowest, adds: register << 8 | rank (members.rs, Sketch::place).
__device__ __forceinline__ u32 member_of(u64 first, u64 second) {
    u64 one = first ^ 0x9e3779b97f4a7c15ull, other = (second << 23 | second >> 41) ^ 0xd6e8feb86659fd93ull;
    u64 hash = scatter(__umul64hi(one, other) ^ one * other);
    u32 rank = (u32)__clzll((long long)(hash << 12 | 1u << 11)) + 1;
    return (u32)(hash >> 52) << 8 | rank;
}

// coded [count]: what the forms behind the `known` ones stand for; those of more than `longest`
// bytes, 16 at most, are foreign. stop_words: codes, sorted. Of foreign forms: their bytes
// [counters[FOREIGN_BYTES]], and place and length of each [counters[FOREIGN_FORMS]].
extern "C" __global__ void invert_code_forms(
    const u8* __restrict__ arena, const u32* __restrict__ form_places, u32 known, u32 count, u32 longest, u32 stems,
    const u64* __restrict__ stop_words, u32 stop_word_count, Coded* coded, u32* counters, u8* foreign_bytes,
    uint2* foreign_places) {
    u32 form = blockIdx.x * blockDim.x + threadIdx.x;
    if (form >= count) return;
    u32 from = form_places[known + form], length = form_places[known + form + 1] - from, seen = 0;
    u64 first = 0, second = 0;
    Word word = {0, 0, length, 0, 0, 0};
    for (u32 i = 0; i < length && length <= longest; i++) {
        u64 byte = arena[from + i];
        seen |= (u32)byte;
        word.high = word.high << 8 | word.low >> 56;
        word.low = word.low << 8 | byte;
        if (i < 8) first |= byte << 8 * i;
        else second |= byte << 8 * (i - 8);
    }
    Coded here = {FOREIGN, 0};
    if (length <= longest && seen < 0x80) {
        u64 code = length <= 12 ? word.code() : 0;
        u32 place = find(stop_words, 0, stop_word_count, code);
        if (place < stop_word_count && stop_words[place] == code) {
            here.code = NO_TERM;
        } else {
            if (stems != 0) word.stem(first);
            if (word.length == 0) {
                here.code = NO_TERM;
            } else if (word.length <= 12) {
                here.code = word.code();
                here.member = member_of(first, second);
            }
        }
    }
    if (here.code == FOREIGN) {
        u32 number = atomicAdd(&counters[FOREIGN_FORMS], 1u), place = atomicAdd(&counters[FOREIGN_BYTES], length);
        here.code |= number;
        foreign_places[number] = make_uint2(place, length);
        for (u32 i = 0; i < length; i++) foreign_bytes[place + i] = arena[from + i];
    }
    coded[form] = here;
}

// told [count]: x becomes the slot of the term of each, or NONE. New terms get the next numbers:
// slot_terms [slots], codes [terms]. There are twice as many slots as terms at least.
extern "C" __global__ void invert_find_terms(
    const Coded* __restrict__ coded, u32 count, u64* slots, u32 mask, u32* slot_terms, u32* terms, u64* codes, uint2* told) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    u64 code = coded[at].code;
    u32 slot = NONE;
    if (code >> 33 != 0) {
        bool fresh;
        slot = find_slot(slots, mask, mask + 1, scatter(code), fresh);
        if (fresh) {
            u32 number = atomicAdd(terms, 1u);
            slot_terms[slot] = number;
            codes[number] = code;
        }
    }
    told[at].x = slot;
}

// told [count]: meanings, as invert_count_terms reads them; foreign [foreign forms]: the host's.
extern "C" __global__ void invert_tell_terms(
    const Coded* __restrict__ coded, u32 count, const u32* __restrict__ slot_terms, const uint2* __restrict__ foreign,
    uint2* told) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    Coded here = coded[at];
    u32 slot = told[at].x;
    if (slot != NONE) told[at] = make_uint2(slot_terms[slot], (u32)here.member);
    else if (here.code >> 32 != 0) told[at] = foreign[(u32)here.code];
    else told[at] = make_uint2((u32)here.code, (u32)here.member);
}

// slots [mask + 1], empty, more than terms: get all codes [terms], and slot_terms their numbers.
extern "C" __global__ void invert_fill_table(
    const u64* __restrict__ codes, const u32* __restrict__ terms, u64* slots, u32 mask, u32* slot_terms) {
    u32 number = blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= *terms) return;
    bool fresh;
    slot_terms[find_slot(slots, mask, mask + 1, scatter(codes[number]), fresh)] = number;
}
