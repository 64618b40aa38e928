/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * System calls that are no cancellation points. The C library's read(2), close(2) and nanosleep(2)
 * are such points (pthreads(7)): a thread that is cancelled in one leaves a lock taken or an object
 * half made. syscall(2) is none, so a cancelled thread ends after the verb that it is in. Arguments
 * and results are those of the functions without the prefix. `scripts/check-house` forbids those
 * functions in this library, except where waiting is the contract of the verb.
 */
#ifndef VB_BASE_SYS_H
#define VB_BASE_SYS_H

#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifdef __SANITIZE_THREAD__
void __sanitizer_syscall_pre_impl_close(long fd); /* gcc has no header for it */
#endif

/* Each offset and each time is passed in one register. */
_Static_assert(sizeof(long) == 8, "the system calls here are those of 64-bit systems");

#define VB_SYS_SIGNALS 8 /* bytes of the kernel's signal set */

static inline ssize_t vb_sys_read(int fd, void *buf, size_t size)
{
	return syscall(SYS_read, fd, buf, size);
}

static inline ssize_t vb_sys_write(int fd, const void *buf, size_t size)
{
	return syscall(SYS_write, fd, buf, size);
}

static inline ssize_t vb_sys_pread(int fd, void *buf, size_t size, off_t at)
{
	return syscall(SYS_pread64, fd, buf, size, at);
}

static inline ssize_t vb_sys_pwrite(int fd, const void *buf, size_t size, off_t at)
{
	return syscall(SYS_pwrite64, fd, buf, size, at);
}

static inline ssize_t vb_sys_preadv(int fd, const struct iovec *iov, int count, off_t at)
{
	return syscall(SYS_preadv, fd, iov, count, at, 0l);
}

ssize_t vb_sys_pwritev(int fd, const struct iovec *iov, int count, off_t at);

static inline ssize_t vb_sys_preadv2(int fd, const struct iovec *iov, int count, off_t at,
				     int flags)
{
	return syscall(SYS_preadv2, fd, iov, count, at, 0l, flags);
}

/* O_CREAT makes a file with mode 0666, less the umask. */
static inline int vb_sys_open(const char *path, int flags)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0666);
}

/*
 * For reading. The "c" of glibc: neither this call nor a read of the stream is a cancellation point
 * (fopen(3)).
 */
static inline FILE *vb_sys_fopen(const char *path)
{
	return fopen(path, "rce");
}

/*
 * The thread sanitizer keeps a record of descriptors. Without this call it would take the next file
 * of that number for the same file.
 */
static inline int vb_sys_close(int fd)
{
#ifdef __SANITIZE_THREAD__
	__sanitizer_syscall_pre_impl_close(fd);
#endif
	return (int)syscall(SYS_close, fd);
}

static inline ssize_t vb_sys_send(int fd, const void *buf, size_t size, int flags)
{
	return syscall(SYS_sendto, fd, buf, size, flags, NULL, 0);
}

static inline ssize_t vb_sys_recv(int fd, void *buf, size_t size, int flags)
{
	return syscall(SYS_recvfrom, fd, buf, size, flags, NULL, NULL);
}

static inline ssize_t vb_sys_sendto(int fd, const void *buf, size_t size, int flags,
				    const struct sockaddr *to, socklen_t length)
{
	return syscall(SYS_sendto, fd, buf, size, flags, to, length);
}

static inline ssize_t vb_sys_recvfrom(int fd, void *buf, size_t size, int flags,
				      struct sockaddr *from, socklen_t *length)
{
	return syscall(SYS_recvfrom, fd, buf, size, flags, from, length);
}

static inline ssize_t vb_sys_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return syscall(SYS_sendmsg, fd, msg, flags);
}

static inline ssize_t vb_sys_recvmsg(int fd, struct msghdr *msg, int flags)
{
	return syscall(SYS_recvmsg, fd, msg, flags);
}

static inline int vb_sys_sendmmsg(int fd, struct mmsghdr *msgs, unsigned int count, int flags)
{
	return (int)syscall(SYS_sendmmsg, fd, msgs, count, flags);
}

static inline int vb_sys_recvmmsg(int fd, struct mmsghdr *msgs, unsigned int count, int flags)
{
	return (int)syscall(SYS_recvmmsg, fd, msgs, count, flags, NULL);
}

static inline int vb_sys_connect(int fd, const struct sockaddr *addr, socklen_t length)
{
	return (int)syscall(SYS_connect, fd, addr, length);
}

static inline int vb_sys_accept4(int fd, struct sockaddr *addr, socklen_t *length, int flags)
{
	return (int)syscall(SYS_accept4, fd, addr, length, flags);
}

/* Waits for one descriptor. Returns 1 when it is ready, 0 when the time is over. */
int vb_sys_poll_one(int fd, short events, int timeout_ms);
/* Waits for several descriptors; the timeout is not negative. */
int vb_sys_poll(struct pollfd *fds, unsigned int count, int timeout_ms);

static inline int vb_sys_epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms)
{
	return (int)syscall(SYS_epoll_pwait, fd, events, count, timeout_ms, NULL, VB_SYS_SIGNALS);
}

/* `ns`: the time to wait. On Linux before 5.11, which has only milliseconds, it is rounded. */
int vb_sys_epoll_wait_ns(int fd, struct epoll_event *events, int count, int64_t ns);

/* Sleeps for less when a signal comes. */
static inline void vb_sys_nanosleep(const struct timespec *t)
{
	(void)syscall(SYS_nanosleep, t, NULL);
}

static inline int vb_sys_fallocate(int fd, int mode, off_t offset, off_t length)
{
	return (int)syscall(SYS_fallocate, fd, mode, offset, length);
}

static inline int vb_sys_msync(void *addr, size_t length, int flags)
{
	return (int)syscall(SYS_msync, addr, length, flags);
}

static inline ssize_t vb_sys_getrandom(void *buf, size_t size, unsigned int flags)
{
	return syscall(SYS_getrandom, buf, size, flags);
}

/*
 * Zeroed pages of this process alone, present as they are used; MAP_FAILED: there are none. By the
 * number of the call: a program may have put code of its own before mmap(2), which then asks in the
 * library's place, and `verbatim run --mapped` would take them for the program's.
 */
static inline void *vb_sys_pages(size_t bytes)
{
	return (void *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0l);
}

#endif
