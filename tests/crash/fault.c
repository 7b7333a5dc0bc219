/* Fails, or kills the process, at the N-th call that changes a database file.
 *
 * Loaded with LD_PRELOAD; armed from Python with ctypes (see lives.py). Only files whose path contains
 * `holdfast.db` count, so that N means the same in every run. Writes fail with ENOSPC, syncs with EIO;
 * a kill in the middle of a write leaves half of it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { NEVER, ONCE, STAY, KILL };

static volatile int how = NEVER;
static volatile long at, calls, hits;

void fault_arm(int new_how, long new_at) { at = new_at; calls = 0; how = new_how; }
long fault_hits(void) { return hits; }

static int ours(const char *path) { return strstr(path, "holdfast.db") != NULL; }

static int ours_fd(int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return ours(path);
}

static int strikes(void)
{
    if (how == NEVER) return 0;
    long call = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
    if (call != at && !(how == STAY && call > at)) return 0;
    hits++;
    return 1;
}

static void die(void) { kill(getpid(), SIGKILL); for (;;) pause(); }

static int fails(int error)
{
    if (!strikes()) return 0;
    if (how == KILL) die();
    errno = error;
    return 1;
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__)) dlsym(RTLD_NEXT, name)

#define PWRITE(name) \
    ssize_t name(int fd, const void *data, size_t size, off_t offset) \
    { \
        REAL(ssize_t, #name, int, const void *, size_t, off_t); \
        if (how != NEVER && ours_fd(fd) && strikes()) { \
            if (how == KILL) { real(fd, data, size / 2, offset); die(); } \
            errno = ENOSPC; \
            return -1; \
        } \
        return real(fd, data, size, offset); \
    }

#define SYNC(name) \
    int name(int fd) \
    { \
        REAL(int, #name, int); \
        return how != NEVER && ours_fd(fd) && fails(EIO) ? -1 : real(fd); \
    }

#define TRUNCATE(name) \
    int name(int fd, off_t size) \
    { \
        REAL(int, #name, int, off_t); \
        return how != NEVER && ours_fd(fd) && fails(ENOSPC) ? -1 : real(fd, size); \
    }

PWRITE(pwrite)
PWRITE(pwrite64)
SYNC(fsync)
SYNC(fdatasync)
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

int unlink(const char *path)
{
    REAL(int, "unlink", const char *);
    return how != NEVER && ours(path) && fails(EIO) ? -1 : real(path);
}
