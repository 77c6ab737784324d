/* Reads small files of one folder and writes them as members of a tar stream, many in one call; and
 * the other way round.
 *
 * Only the common case is here. A file that differs from what the scan saw, that may have changed
 * meanwhile, that cannot be read, or whose header is not a single block is left out, for
 * mydata_like.transfer.archive_writer to read again and to name the error. The checks are those of
 * mydata_like.transfer.file_source, the bytes those of mydata_like.transfer.tar. What arrives and is
 * not as wanted, or cannot be written, is left to mydata_like.transfer.folder.received_files.
 */
#if !defined(_WIN32)
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif
#include <time.h>
#include <unistd.h>

#if defined(__APPLE__)
#define st_mtim st_mtimespec
#define st_ctim st_ctimespec
#endif

enum { BLOCK = 512, MOST_FILES = 32, LANES = 8, MODE = 0660 };
enum { NAME = 100, PREFIX = 155, PREFIX_PLACE = 345 };
enum { NO_REPLACE = 1 };           /* RENAME_NOREPLACE of linux/fs.h; glibc has it since 2.28 */
enum { COMPLETE = 1, UNUSABLE };   /* what became of a member */

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

/* What the bytes of a file have to be, and its time. */
struct wanted {
    uint64_t size;
    int64_t modified_ns;
    uint8_t checksum[16];
};

/* A member of a tar stream that has arrived as a whole. */
struct member {
    char name[PREFIX + 1 + NAME + 1];
    const uint8_t *content;
    uint64_t size, mode;
};

/* Parse octal digits, between blanks and a zero byte or blank; return 0 for anything else. */
static int parse_octal(const uint8_t *field, int length, uint64_t *value)
{
    int each = 0;
    while (each < length && field[each] == ' ')
        each++;
    for (*value = 0; each < length && field[each] >= '0' && field[each] <= '7'; each++)
        *value = *value * 8 + (uint64_t)(field[each] - '0');
    while (each < length && (field[each] == ' ' || !field[each]))
        each++;
    return each == length;
}

static int is_sum_right(const uint8_t *block)
{
    uint64_t sum = 8 * ' ', declared;
    for (int each = 0; each < BLOCK; each++)
        sum += each < 148 || each >= 156 ? block[each] : 0;
    return parse_octal(block + 148, 8, &declared) && declared == sum;
}

/* Return the bytes of the first member, or 0 unless it is a regular file that is here as a whole. */
static size_t parse_member(const uint8_t *stream, size_t length, struct member *member)
{
    if (length < BLOCK || stream[156] != '0' || !is_sum_right(stream) ||
        !parse_octal(stream + 100, 8, &member->mode) ||
        !parse_octal(stream + 124, 12, &member->size) || member->size > length)
        return 0;
    size_t whole = BLOCK + member->size + (size_t)(-member->size % BLOCK), filled = 0;
    if (whole > length)
        return 0;
    /* POSIX; the old form of GNU has no prefix. */
    if (!memcmp(stream + 257, "ustar", 6) && stream[PREFIX_PLACE]) {
        filled = strnlen((const char *)stream + PREFIX_PLACE, PREFIX);
        memcpy(member->name, stream + PREFIX_PLACE, filled);
        member->name[filled++] = '/';
    }
    size_t last = strnlen((const char *)stream, NAME);
    memcpy(member->name + filled, stream, last);
    member->name[filled + last] = 0;
    member->content = stream + BLOCK;
    return whole;
}

/* Write a new file, or nothing; return whether it is complete. */
static int write_new(
    int folder, const char *name, const struct member *member, const struct wanted *wanted)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int descriptor = openat(folder, name, flags, 0600);
    if (descriptor < 0 && errno == EEXIST && !unlinkat(folder, name, 0)) /* of an earlier attempt */
        descriptor = openat(folder, name, flags, 0600);
    if (descriptor < 0)
        return 0;
    int64_t second = wanted->modified_ns / SECOND, rest = wanted->modified_ns % SECOND;
    struct timespec time = {rest < 0 ? second - 1 : second, rest < 0 ? rest + SECOND : rest};
    struct timespec times[] = {time, time};
    int whole = write(descriptor, member->content, member->size) == (ssize_t)member->size &&
                !fchmod(descriptor, member->mode & 0777);
    if (whole)
        futimens(descriptor, times); /* as well as this file system can */
    whole = !close(descriptor) && whole;
    if (!whole)
        unlinkat(folder, name, 0);
    return whole;
}

/* Write members as new files, from somewhere in a stream on; return the bytes that were used.
 *
 * At most 32 files are wanted in an open folder, in the order of the stream, where some may be
 * missing. Each of the members' and of the files' names ends with a zero byte. `done` says what
 * became of each file, 0 if it did not come. The stream is used up to the first member that is not
 * one of those, or not here as a whole.
 */
__attribute__((visibility("default"))) size_t unpack_tiny_files(
    int folder, const char *members, const char *names, const struct wanted *wanted, size_t count,
    const uint8_t *stream, size_t start, size_t length, uint8_t *done)
{
    struct member found[MOST_FILES];
    size_t places[MOST_FILES], used = start, files = 0, next = 0;
    const uint8_t *data[MOST_FILES];
    size_t sizes[MOST_FILES];
    uint8_t sums[MOST_FILES][16], *checksums[MOST_FILES];
    const char *file_names[MOST_FILES];
    memset(done, 0, count);
    while (files < count) {
        struct member *member = &found[files];
        size_t size = parse_member(stream + used, length - used, member);
        if (!size)
            break;
        const char *name = member->name + (strncmp(member->name, "./", 2) ? 0 : 2);
        size_t place = next;
        const char *members_left = members, *names_left = names;
        while (place < count && strcmp(name, members_left)) {
            members_left += strlen(members_left) + 1;
            names_left += strlen(names_left) + 1;
            place++;
        }
        if (place == count)
            break;
        file_names[files] = names_left;
        members = members_left + strlen(members_left) + 1;
        names = names_left + strlen(names_left) + 1;
        next = place + 1;
        data[files] = member->content;
        sizes[files] = member->size;
        checksums[files] = sums[files];
        places[files++] = place;
        used += size;
    }
    hash_all(data, sizes, checksums, files);
    for (size_t each = 0; each < files; each++) {
        const struct wanted *one = &wanted[places[each]];
        int right = one->size == found[each].size && !memcmp(one->checksum, sums[each], 16) &&
                    write_new(folder, file_names[each], &found[each], one);
        done[places[each]] = right ? COMPLETE : UNUSABLE;
    }
    return used - start;
}

/* Give files of an open folder other names that are free; `done` says of each whether it has it.
 *
 * Each name ends with a zero byte. File systems that cannot do that in one step do nothing.
 */
__attribute__((visibility("default"))) void rename_tiny_files(
    int folder, const char *names, const char *others, size_t count, uint8_t *done)
{
    for (size_t each = 0; each < count; each++) {
#if defined(SYS_renameat2)
        done[each] = !syscall(SYS_renameat2, folder, names, folder, others, NO_REPLACE);
#else
        done[each] = 0;
#endif
        names += strlen(names) + 1;
        others += strlen(others) + 1;
    }
}
#endif
