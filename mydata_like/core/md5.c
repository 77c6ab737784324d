/* MD5 (RFC 1321) of up to eight inputs at once: of two in turn, or each in a lane of vectors.
 *
 * One input at a time leaves most of a processor idle, since each step of MD5 needs the result of
 * the one before. Needs the vector extensions of GCC 12 or Clang, and a little-endian processor;
 * mydata_like.core.hashing checks the results and uses hashlib where this library is missing or wrong.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

#define INLINE static inline __attribute__((always_inline))

enum { BLOCK = 64, LANES = 8 };

/* Vectors of 16 bytes, which every x86-64 and ARM64 has, and which all ABIs align on the stack. */
typedef uint32_t vector __attribute__((vector_size(16)));

struct md5 {
    uint32_t state[4];
    uint32_t pending; /* bytes of a block that is not complete */
    uint64_t length;  /* bytes so far */
    uint8_t block[BLOCK];
};

#define F(x, y, z) ((z) ^ ((x) & ((y) ^ (z))))
#define G(x, y, z) (((x) & (z)) + ((y) & ~(z)))
#define H(x, y, z) ((x) ^ (y) ^ (z))
#define I(x, y, z) ((y) ^ ((x) | ~(z)))
#define ROTATE(x, count) (((x) << (count)) | ((x) >> (32 - (count))))
#define STEP(f, a, b, c, d, word, constant, count)     \
    a += f(b, c, d) + (word) + (uint32_t)(constant); \
    a = b + ROTATE(a, count);

/* The 64 steps: function, registers, index of the word, constant, rotation. */
#define STEPS(DO)                                                                  \
    DO(F, a, b, c, d, 0, 0xd76aa478, 7) DO(F, d, a, b, c, 1, 0xe8c7b756, 12)       \
    DO(F, c, d, a, b, 2, 0x242070db, 17) DO(F, b, c, d, a, 3, 0xc1bdceee, 22)      \
    DO(F, a, b, c, d, 4, 0xf57c0faf, 7) DO(F, d, a, b, c, 5, 0x4787c62a, 12)       \
    DO(F, c, d, a, b, 6, 0xa8304613, 17) DO(F, b, c, d, a, 7, 0xfd469501, 22)      \
    DO(F, a, b, c, d, 8, 0x698098d8, 7) DO(F, d, a, b, c, 9, 0x8b44f7af, 12)       \
    DO(F, c, d, a, b, 10, 0xffff5bb1, 17) DO(F, b, c, d, a, 11, 0x895cd7be, 22)    \
    DO(F, a, b, c, d, 12, 0x6b901122, 7) DO(F, d, a, b, c, 13, 0xfd987193, 12)     \
    DO(F, c, d, a, b, 14, 0xa679438e, 17) DO(F, b, c, d, a, 15, 0x49b40821, 22)    \
    DO(G, a, b, c, d, 1, 0xf61e2562, 5) DO(G, d, a, b, c, 6, 0xc040b340, 9)        \
    DO(G, c, d, a, b, 11, 0x265e5a51, 14) DO(G, b, c, d, a, 0, 0xe9b6c7aa, 20)     \
    DO(G, a, b, c, d, 5, 0xd62f105d, 5) DO(G, d, a, b, c, 10, 0x02441453, 9)       \
    DO(G, c, d, a, b, 15, 0xd8a1e681, 14) DO(G, b, c, d, a, 4, 0xe7d3fbc8, 20)     \
    DO(G, a, b, c, d, 9, 0x21e1cde6, 5) DO(G, d, a, b, c, 14, 0xc33707d6, 9)       \
    DO(G, c, d, a, b, 3, 0xf4d50d87, 14) DO(G, b, c, d, a, 8, 0x455a14ed, 20)      \
    DO(G, a, b, c, d, 13, 0xa9e3e905, 5) DO(G, d, a, b, c, 2, 0xfcefa3f8, 9)       \
    DO(G, c, d, a, b, 7, 0x676f02d9, 14) DO(G, b, c, d, a, 12, 0x8d2a4c8a, 20)     \
    DO(H, a, b, c, d, 5, 0xfffa3942, 4) DO(H, d, a, b, c, 8, 0x8771f681, 11)       \
    DO(H, c, d, a, b, 11, 0x6d9d6122, 16) DO(H, b, c, d, a, 14, 0xfde5380c, 23)    \
    DO(H, a, b, c, d, 1, 0xa4beea44, 4) DO(H, d, a, b, c, 4, 0x4bdecfa9, 11)       \
    DO(H, c, d, a, b, 7, 0xf6bb4b60, 16) DO(H, b, c, d, a, 10, 0xbebfbc70, 23)     \
    DO(H, a, b, c, d, 13, 0x289b7ec6, 4) DO(H, d, a, b, c, 0, 0xeaa127fa, 11)      \
    DO(H, c, d, a, b, 3, 0xd4ef3085, 16) DO(H, b, c, d, a, 6, 0x04881d05, 23)      \
    DO(H, a, b, c, d, 9, 0xd9d4d039, 4) DO(H, d, a, b, c, 12, 0xe6db99e5, 11)      \
    DO(H, c, d, a, b, 15, 0x1fa27cf8, 16) DO(H, b, c, d, a, 2, 0xc4ac5665, 23)     \
    DO(I, a, b, c, d, 0, 0xf4292244, 6) DO(I, d, a, b, c, 7, 0x432aff97, 10)       \
    DO(I, c, d, a, b, 14, 0xab9423a7, 15) DO(I, b, c, d, a, 5, 0xfc93a039, 21)     \
    DO(I, a, b, c, d, 12, 0x655b59c3, 6) DO(I, d, a, b, c, 3, 0x8f0ccc92, 10)      \
    DO(I, c, d, a, b, 10, 0xffeff47d, 15) DO(I, b, c, d, a, 1, 0x85845dd1, 21)     \
    DO(I, a, b, c, d, 8, 0x6fa87e4f, 6) DO(I, d, a, b, c, 15, 0xfe2ce6e0, 10)      \
    DO(I, c, d, a, b, 6, 0xa3014314, 15) DO(I, b, c, d, a, 13, 0x4e0811a1, 21)     \
    DO(I, a, b, c, d, 4, 0xf7537e82, 6) DO(I, d, a, b, c, 11, 0xbd3af235, 10)      \
    DO(I, c, d, a, b, 2, 0x2ad7d2bb, 15) DO(I, b, c, d, a, 9, 0xeb86d391, 21)

/* One and two lanes. */

#define STEP_ONE(f, a, b, c, d, word, constant, count) \
    STEP(f, a, b, c, d, words[word], constant, count)

static void hash_one(uint32_t *state, const uint8_t *data, size_t blocks)
{
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    for (; blocks; blocks--, data += BLOCK) {
        uint32_t words[16], was_a = a, was_b = b, was_c = c, was_d = d;
        memcpy(words, data, BLOCK);
        STEPS(STEP_ONE)
        a += was_a, b += was_b, c += was_c, d += was_d;
    }
    state[0] = a, state[1] = b, state[2] = c, state[3] = d;
}

/* The steps of two lanes, or two times four, alternate, so that one need not wait for the other. */
#define STEP_TWO(f, a, b, c, d, word, constant, count)            \
    STEP(f, a##0, b##0, c##0, d##0, words[word], constant, count) \
    STEP(f, a##1, b##1, c##1, d##1, others[word], constant, count)

static void hash_two(uint32_t *const *states, const uint8_t *const *data, size_t blocks)
{
    uint32_t *state = states[0], *other = states[1];
    uint32_t a0 = state[0], b0 = state[1], c0 = state[2], d0 = state[3];
    uint32_t a1 = other[0], b1 = other[1], c1 = other[2], d1 = other[3];
    for (size_t offset = 0; offset < blocks * BLOCK; offset += BLOCK) {
        uint32_t words[16], was_a0 = a0, was_b0 = b0, was_c0 = c0, was_d0 = d0;
        uint32_t others[16], was_a1 = a1, was_b1 = b1, was_c1 = c1, was_d1 = d1;
        memcpy(words, data[0] + offset, BLOCK);
        memcpy(others, data[1] + offset, BLOCK);
        STEPS(STEP_TWO)
        a0 += was_a0, b0 += was_b0, c0 += was_c0, d0 += was_d0;
        a1 += was_a1, b1 += was_b1, c1 += was_c1, d1 += was_d1;
    }
    state[0] = a0, state[1] = b0, state[2] = c0, state[3] = d0;
    other[0] = a1, other[1] = b1, other[2] = c1, other[3] = d1;
}

/* Four and eight lanes. */

INLINE void load(vector *words, const uint8_t *const *data, size_t offset)
{
    for (int part = 0; part < 4; part++) {
        vector row[4];
        for (int lane = 0; lane < 4; lane++)
            memcpy(&row[lane], data[lane] + offset + 16 * part, 16);
        vector low = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
        vector high = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
        vector other_low = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
        vector other_high = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
        words[4 * part] = __builtin_shufflevector(low, other_low, 0, 1, 4, 5);
        words[4 * part + 1] = __builtin_shufflevector(low, other_low, 2, 3, 6, 7);
        words[4 * part + 2] = __builtin_shufflevector(high, other_high, 0, 1, 4, 5);
        words[4 * part + 3] = __builtin_shufflevector(high, other_high, 2, 3, 6, 7);
    }
}

INLINE void load_state(vector *state, uint32_t *const *lanes)
{
    for (int lane = 0; lane < 4; lane++)
        for (int part = 0; part < 4; part++)
            state[part][lane] = lanes[lane][part];
}

INLINE void store_state(const vector *state, uint32_t *const *lanes)
{
    for (int lane = 0; lane < 4; lane++)
        for (int part = 0; part < 4; part++)
            lanes[lane][part] = state[part][lane];
}

INLINE void hash_four(uint32_t *const *states, const uint8_t *const *data, size_t blocks)
{
    vector state[4], words[16];
    load_state(state, states);
    vector a = state[0], b = state[1], c = state[2], d = state[3];
    for (size_t offset = 0; offset < blocks * BLOCK; offset += BLOCK) {
        vector was_a = a, was_b = b, was_c = c, was_d = d;
        load(words, data, offset);
        STEPS(STEP_ONE)
        a += was_a, b += was_b, c += was_c, d += was_d;
    }
    state[0] = a, state[1] = b, state[2] = c, state[3] = d;
    store_state(state, states);
}

INLINE void hash_eight(uint32_t *const *states, const uint8_t *const *data, size_t blocks)
{
    vector state[4], other[4], words[16], others[16];
    load_state(state, states);
    load_state(other, states + 4);
    vector a0 = state[0], b0 = state[1], c0 = state[2], d0 = state[3];
    vector a1 = other[0], b1 = other[1], c1 = other[2], d1 = other[3];
    for (size_t offset = 0; offset < blocks * BLOCK; offset += BLOCK) {
        vector was_a0 = a0, was_b0 = b0, was_c0 = c0, was_d0 = d0;
        vector was_a1 = a1, was_b1 = b1, was_c1 = c1, was_d1 = d1;
        load(words, data, offset);
        load(others, data + 4, offset);
        STEPS(STEP_TWO)
        a0 += was_a0, b0 += was_b0, c0 += was_c0, d0 += was_d0;
        a1 += was_a1, b1 += was_b1, c1 += was_c1, d1 += was_d1;
    }
    state[0] = a0, state[1] = b0, state[2] = c0, state[3] = d0;
    other[0] = a1, other[1] = b1, other[2] = c1, other[3] = d1;
    store_state(state, states);
    store_state(other, states + 4);
}

#if defined(__x86_64__) && !defined(MD5_PORTABLE)
/* The same with rotations and any function of three registers as one instruction each. */
__attribute__((target("avx512vl"))) static void
hash_four_avx512(uint32_t *const *states, const uint8_t *const *data, size_t blocks)
{
    hash_four(states, data, blocks);
}

__attribute__((target("avx512vl"))) static void
hash_eight_avx512(uint32_t *const *states, const uint8_t *const *data, size_t blocks)
{
    hash_eight(states, data, blocks);
}

static int has_avx512(void)
{
    return __builtin_cpu_supports("avx512vl");
}
#else
#define hash_four_avx512 hash_four
#define hash_eight_avx512 hash_eight
#define has_avx512() 0
#endif

/* Hash the same number of blocks in all lanes.
 *
 * Two are fastest in turn, and so are three and four without AVX-512. Lanes of vectors that are not
 * used repeat the first one.
 */
static void hash_lanes(uint32_t **states, const uint8_t **data, size_t lanes, size_t blocks)
{
    uint32_t unused[4] = {0};
    if (lanes <= (has_avx512() ? 2 : 4)) {
        for (; lanes >= 2; lanes -= 2, states += 2, data += 2)
            hash_two(states, data, blocks);
        if (lanes)
            hash_one(states[0], data[0], blocks);
        return;
    }
    size_t width = lanes <= 4 ? 4 : LANES;
    for (size_t lane = lanes; lane < width; lane++) {
        states[lane] = unused;
        data[lane] = data[0];
    }
    if (width == 4)
        hash_four_avx512(states, data, blocks);
    else if (has_avx512())
        hash_eight_avx512(states, data, blocks);
    else
        hash_eight(states, data, blocks);
}

/* Take bytes until the pending block is complete, and hash it then; return how many. */
static size_t complete(struct md5 *context, const uint8_t *data, size_t size)
{
    if (!context->pending)
        return 0;
    size_t taken = BLOCK - context->pending;
    if (taken > size)
        taken = size;
    memcpy(context->block + context->pending, data, taken);
    context->pending += (uint32_t)taken;
    if (context->pending == BLOCK) {
        hash_one(context->state, context->block, 1);
        context->pending = 0;
    }
    return taken;
}

static void update_some(
    struct md5 *const *contexts, const uint8_t *const *data, const size_t *sizes, size_t count)
{
    uint32_t *states[LANES] = {0};
    const uint8_t *left[LANES] = {0};
    size_t blocks[LANES], lanes = 0;
    for (size_t each = 0; each < count; each++) {
        struct md5 *context = contexts[each];
        size_t taken = complete(context, data[each], sizes[each]);
        size_t whole = (sizes[each] - taken) / BLOCK;
        size_t rest = sizes[each] - taken - whole * BLOCK;
        context->length += sizes[each];
        if (rest) {
            memcpy(context->block, data[each] + sizes[each] - rest, rest);
            context->pending = (uint32_t)rest;
        }
        if (whole) {
            states[lanes] = context->state;
            left[lanes] = data[each] + taken;
            blocks[lanes++] = whole;
        }
    }
    while (lanes) {
        uint32_t *now[LANES];
        const uint8_t *from[LANES];
        size_t common = blocks[0], kept = 0;
        for (size_t lane = 1; lane < lanes; lane++)
            common = blocks[lane] < common ? blocks[lane] : common;
        memcpy(now, states, sizeof now);
        memcpy(from, left, sizeof from);
        hash_lanes(now, from, lanes, common);
        for (size_t lane = 0; lane < lanes; lane++) {
            if (blocks[lane] == common)
                continue;
            states[kept] = states[lane];
            left[kept] = left[lane] + common * BLOCK;
            blocks[kept++] = blocks[lane] - common;
        }
        lanes = kept;
    }
}

EXPORT size_t md5_context_size(void) { return sizeof(struct md5); }

EXPORT void md5_begin(struct md5 *context)
{
    memset(context, 0, sizeof *context);
    context->state[0] = 0x67452301;
    context->state[1] = 0xefcdab89;
    context->state[2] = 0x98badcfe;
    context->state[3] = 0x10325476;
}

/* Append data of its own to each of `count` different contexts. */
EXPORT void md5_update(
    struct md5 *const *contexts, const uint8_t *const *data, const size_t *sizes, size_t count)
{
    for (; count > LANES; count -= LANES, contexts += LANES, data += LANES, sizes += LANES)
        update_some(contexts, data, sizes, LANES);
    update_some(contexts, data, sizes, count);
}

/* Write the 16 bytes of the checksum; the context stays as it is. */
EXPORT void md5_read(const struct md5 *context, uint8_t *checksum)
{
    struct md5 end = *context;
    uint64_t bits = end.length * 8;
    end.block[end.pending++] = 0x80;
    if (end.pending > BLOCK - 8) {
        memset(end.block + end.pending, 0, BLOCK - end.pending);
        hash_one(end.state, end.block, 1);
        end.pending = 0;
    }
    memset(end.block + end.pending, 0, BLOCK - 8 - end.pending);
    memcpy(end.block + BLOCK - 8, &bits, 8);
    hash_one(end.state, end.block, 1);
    memcpy(checksum, end.state, 16);
}

/* Write the checksums of at most eight whole inputs, 16 bytes each. */
void md5_whole(
    const uint8_t *const *data, const size_t *sizes, uint8_t *const *checksums, size_t count)
{
    struct md5 contexts[LANES], *each[LANES];
    for (size_t lane = 0; lane < count; lane++)
        md5_begin(each[lane] = &contexts[lane]);
    update_some(each, data, sizes, count);
    for (size_t lane = 0; lane < count; lane++)
        md5_read(each[lane], checksums[lane]);
}
