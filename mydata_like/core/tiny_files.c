/* Reads small files of one folder and writes them as members of a tar stream, many in one call.
 *
 * Only the common case is here. A file that differs from what the scan saw, that may have changed
 * meanwhile, that cannot be read, or whose header is not a single block is left out, for
 * mydata_like.transfer.archive_writer to read again and to name the error. The checks are those of
 * mydata_like.transfer.file_source, the bytes those of mydata_like.transfer.tar.
 */
#if !defined(_WIN32)
#define _GNU_SOURCE
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if defined(__APPLE__)
#define st_mtim st_mtimespec
#define st_ctim st_ctimespec
#endif

enum { BLOCK = 512, MOST_FILES = 32, LANES = 8, MODE = 0660 };
enum { NAME = 100, PREFIX = 155, PREFIX_PLACE = 345 };

static const int64_t SECOND = 1000000000, FINE = 20000000, COARSE = 2000000000;
static const int64_t LATEST = 077777777777; /* seconds; eleven octal digits */

/* Of md5.c: write the checksums of at most eight inputs, 16 bytes each. */
void md5_whole(
    const uint8_t *const *data, const size_t *sizes, uint8_t *const *checksums, size_t count);

/* A file as the scan saw it; a device or inode of 0 is unknown. */
struct seen {
    uint64_t size, modified_ns, device, inode;
};

struct opened {
    int descriptor; /* negative if there is nothing to read */
    int64_t started;
    struct stat before;
};

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return time.tv_sec * SECOND + time.tv_nsec;
}

static int is_usual(struct timespec time) { return time.tv_sec >= 0 && time.tv_sec <= LATEST; }

static int64_t nanoseconds(struct timespec time) { return time.tv_sec * SECOND + time.tv_nsec; }

static int is_as_seen(const struct stat *status, const struct seen *seen)
{
    return S_ISREG(status->st_mode) && (!seen->device || seen->device == (uint64_t)status->st_dev) &&
           (!seen->inode || seen->inode == (uint64_t)status->st_ino) &&
           (uint64_t)status->st_size == seen->size && is_usual(status->st_mtim) &&
           is_usual(status->st_ctim) && (uint64_t)nanoseconds(status->st_mtim) == seen->modified_ns;
}

static void open_seen(int folder, const char *name, const struct seen *seen, struct opened *file)
{
    file->started = now();
    file->descriptor = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file->descriptor < 0)
        return;
    if (fstat(file->descriptor, &file->before) || !is_as_seen(&file->before, seen)) {
        close(file->descriptor);
        file->descriptor = -1;
    }
}

/* Return whether a time stamp shows that a later write may have left it unchanged. */
static int is_recent(int64_t stamp, int64_t started, int64_t finished)
{
    int64_t lag = stamp % SECOND ? FINE : COARSE;
    return started - lag <= stamp && stamp <= finished + lag;
}

static int is_unchanged(const struct opened *file)
{
    struct stat after;
    if (fstat(file->descriptor, &after) || after.st_size != file->before.st_size ||
        !is_usual(after.st_mtim) || !is_usual(after.st_ctim))
        return 0;
    int64_t modified = nanoseconds(after.st_mtim), changed = nanoseconds(after.st_ctim);
    if (modified != nanoseconds(file->before.st_mtim) ||
        changed != nanoseconds(file->before.st_ctim))
        return 0;
    int64_t settled = file->started - COARSE;
    if (modified < settled && changed < settled)
        return 1;
    int64_t finished = now();
    return !is_recent(modified, file->started, finished) &&
           !is_recent(changed, file->started, finished);
}

/* Read and close a file; return whether it was read unchanged. */
static int read_whole(const struct opened *file, uint8_t *output)
{
    size_t size = (size_t)file->before.st_size;
    int whole = read(file->descriptor, output, size + 1) == (ssize_t)size && is_unchanged(file);
    close(file->descriptor);
    return whole;
}

static void write_octal(uint8_t *field, int digits, uint64_t value)
{
    for (; digits; value >>= 3)
        field[--digits] = (uint8_t)('0' + (value & 7));
}

/* Write the header of a regular file; return 0 if its name needs more than one block. */
static int write_header(uint8_t *block, const char *name, const struct seen *seen)
{
    size_t length = strlen(name), split = 0;
    if (length > NAME) {
        split = length - 1 < PREFIX + 1 ? length - 2 : PREFIX;
        while (split && split + NAME + 1 >= length && name[split] != '/')
            split--;
        if (!split || split + NAME + 1 < length)
            return 0;
    }
    memset(block, 0, BLOCK);
    memcpy(block + PREFIX_PLACE, name, split);
    size_t start = split ? split + 1 : 0;
    memcpy(block, name + start, length - start);
    write_octal(block + 100, 7, MODE);
    write_octal(block + 108, 7, 0);
    write_octal(block + 116, 7, 0);
    write_octal(block + 124, 11, seen->size);
    write_octal(block + 136, 11, seen->modified_ns / (uint64_t)SECOND);
    memset(block + 148, ' ', 8);
    block[156] = '0';
    memcpy(block + 257, "ustar\0" "00", 8);
    uint64_t sum = 0;
    for (int each = 0; each < BLOCK; each++)
        sum += block[each];
    write_octal(block + 148, 6, sum);
    block[154] = 0;
    return 1;
}

/* Hash files of about the same size together, so that all lanes are in use. */
static void hash_all(
    const uint8_t *const *data, const size_t *sizes, uint8_t *const *checksums, size_t count)
{
    size_t order[MOST_FILES];
    for (size_t each = 0; each < count; each++) {
        size_t place = each;
        for (; place && sizes[order[place - 1]] > sizes[each]; place--)
            order[place] = order[place - 1];
        order[place] = each;
    }
    for (size_t first = 0; first < count; first += LANES) {
        const uint8_t *some[LANES];
        size_t some_sizes[LANES], lanes = 0;
        uint8_t *some_checksums[LANES];
        for (; lanes < LANES && first + lanes < count; lanes++) {
            size_t each = order[first + lanes];
            some[lanes] = data[each];
            some_sizes[lanes] = sizes[each];
            some_checksums[lanes] = checksums[each];
        }
        md5_whole(some, some_sizes, some_checksums, lanes);
    }
}

/* Write at most 32 files of an open folder as members; return the number of bytes.
 *
 * Each of the names ends with a zero byte. `done` says of each file whether it was written, and
 * `checksums` has 16 bytes for each. With `ahead`, all are opened first and fetched from the disk
 * together. The output has room for all members, and for one more byte.
 */
__attribute__((visibility("default"))) size_t pack_tiny_files(
    int folder, const char *names, const char *members, const struct seen *seen, size_t count,
    int ahead, uint8_t *output, uint8_t *checksums, uint8_t *done)
{
    struct opened files[MOST_FILES];
    const uint8_t *data[MOST_FILES];
    size_t sizes[MOST_FILES], opened = 0, packed = 0;
    uint8_t *places[MOST_FILES], *end = output;
    for (size_t each = 0; each < count; each++, members += strlen(members) + 1) {
        for (; opened < (ahead ? count : each + 1); opened++, names += strlen(names) + 1) {
            open_seen(folder, names, &seen[opened], &files[opened]);
#if defined(POSIX_FADV_WILLNEED)
            if (ahead && files[opened].descriptor >= 0)
                posix_fadvise(files[opened].descriptor, 0, 0, POSIX_FADV_WILLNEED);
#endif
        }
        done[each] = files[each].descriptor >= 0 && read_whole(&files[each], end + BLOCK) &&
                     write_header(end, members, &seen[each]);
        if (!done[each])
            continue;
        data[packed] = end + BLOCK;
        sizes[packed] = seen[each].size;
        places[packed++] = checksums + 16 * each;
        size_t padding = -seen[each].size % BLOCK;
        end += BLOCK + seen[each].size;
        memset(end, 0, padding);
        end += padding;
    }
    hash_all(data, sizes, places, packed);
    return (size_t)(end - output);
}
#endif
