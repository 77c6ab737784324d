/* Lists an open folder: names and facts of its regular files, many entries in one call.
 *
 * Only the common case is described. Other entries, and files with an unusual time or inode, are
 * only named, for mydata_like.core.openat to look at.
 */
#if !defined(_WIN32)
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__APPLE__)
#define st_mtim st_mtimespec
#define st_ctim st_ctimespec
#endif
#define EXPORTED __attribute__((visibility("default")))

static const int64_t SECOND = 1000000000, FARTHEST = INT64_MAX / 1000000000 - 1; /* seconds */

struct facts {
    int64_t size, modified_ns, changed_ns, inode;
};

/* What was read: numbers of files and of other entries, bytes of their names, and sums. */
struct totals {
    int64_t files, others, file_names, other_names, size, newest_ns;
};

static int is_usual(struct timespec time) { return time.tv_sec > -FARTHEST && time.tv_sec < FARTHEST; }

static int64_t nanoseconds(struct timespec time) { return time.tv_sec * SECOND + time.tv_nsec; }

/* Append a name with its zero byte; return the new end. */
static int64_t append(char *names, int64_t end, const char *name)
{
    size_t length = strlen(name) + 1;
    memcpy(names + end, name, length);
    return end + (int64_t)length;
}

/* Open the entries of an open folder, whose descriptor stays open; return 0 or an error. */
EXPORTED int open_entries(int folder, DIR **entries)
{
    int copy = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return errno;
    *entries = fdopendir(copy);
    if (*entries)
        return 0;
    int error = errno;
    close(copy);
    return error;
}

EXPORTED void close_entries(DIR *entries) { closedir(entries); }

/* Read at most `most` further entries; return 0 or the number of an error.
 *
 * Both arrays of names have room for as many of the longest names.
 */
EXPORTED int read_entries(
    DIR *entries, int64_t most, char *files, char *others, struct facts *facts, uint64_t *devices,
    uint32_t *modes, struct totals *totals)
{
    memset(totals, 0, sizeof *totals);
    totals->newest_ns = INT64_MIN;
    while (totals->files + totals->others < most) {
        errno = 0;
        const struct dirent *entry = readdir(entries);
        if (!entry)
            return errno;
        const char *name = entry->d_name;
        if (!strcmp(name, ".") || !strcmp(name, ".."))
            continue;
        struct stat status;
        if (fstatat(dirfd(entries), name, &status, AT_SYMLINK_NOFOLLOW) ||
            !S_ISREG(status.st_mode) || !is_usual(status.st_mtim) || !is_usual(status.st_ctim) ||
            (uint64_t)status.st_ino > INT64_MAX) {
            totals->other_names = append(others, totals->other_names, name);
            totals->others++;
            continue;
        }
        struct facts *these = &facts[totals->files];
        these->size = status.st_size;
        these->modified_ns = nanoseconds(status.st_mtim);
        these->changed_ns = nanoseconds(status.st_ctim);
        these->inode = (int64_t)status.st_ino;
        devices[totals->files] = (uint64_t)status.st_dev;
        modes[totals->files++] = status.st_mode;
        totals->file_names = append(files, totals->file_names, name);
        totals->size += status.st_size;
        if (these->modified_ns > totals->newest_ns)
            totals->newest_ns = these->modified_ns;
    }
    return 0;
}
#endif
