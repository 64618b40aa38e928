/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reading and writing, with the checked forms that programs built with _FORTIFY_SOURCE call. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/rsocket.h>

#include "open.h"
#include "real.h"

#define DATA_CALL(type, name, params, args, call) \
	HOOK(type, name, params)                  \
	{                                         \
		struct fd f = open_get(fd);       \
                                                  \
		if (f.kind != FD_RSOCKET)         \
			return REAL(name) args;   \
		return INSIDE(call);              \
	}                                         \
	_Static_assert(1, "")

DATA_CALL(ssize_t, recv, (int fd, void *to, size_t size, int flags), (fd, to, size, flags),
	  rrecv(f.behind, to, size, flags));
DATA_CALL(ssize_t, recvfrom,
	  (int fd, void *to, size_t size, int flags, struct sockaddr *addr, socklen_t *length),
	  (fd, to, size, flags, addr, length), rrecvfrom(f.behind, to, size, flags, addr, length));
DATA_CALL(ssize_t, read, (int fd, void *to, size_t size), (fd, to, size),
	  rread(f.behind, to, size));
DATA_CALL(ssize_t, readv, (int fd, const struct iovec *iov, int count), (fd, iov, count),
	  rreadv(f.behind, iov, count));
DATA_CALL(ssize_t, send, (int fd, const void *from, size_t size, int flags),
	  (fd, from, size, flags), rsend(f.behind, from, size, flags));
DATA_CALL(ssize_t, sendto,
	  (int fd, const void *from, size_t size, int flags, const struct sockaddr *addr,
	   socklen_t length),
	  (fd, from, size, flags, addr, length),
	  rsendto(f.behind, from, size, flags, addr, length));
DATA_CALL(ssize_t, write, (int fd, const void *from, size_t size), (fd, from, size),
	  rwrite(f.behind, from, size));
DATA_CALL(ssize_t, writev, (int fd, const struct iovec *iov, int count), (fd, iov, count),
	  rwritev(f.behind, iov, count));

/* The program's buffer has `room`; more asked for is its error, which the C library reports. */
DATA_CALL(ssize_t, __read_chk, (int fd, void *to, size_t size, size_t room), (fd, to, size, room),
	  rread(f.behind, to, size < room ? size : room));
DATA_CALL(ssize_t, __recv_chk, (int fd, void *to, size_t size, size_t room, int flags),
	  (fd, to, size, room, flags), rrecv(f.behind, to, size < room ? size : room, flags));
DATA_CALL(ssize_t, __recvfrom_chk,
	  (int fd, void *to, size_t size, size_t room, int flags, struct sockaddr *addr,
	   socklen_t *length),
	  (fd, to, size, room, flags, addr, length),
	  rrecvfrom(f.behind, to, size < room ? size : room, flags, addr, length));

/*
 * What comes with a message besides data (descriptors, times) is nothing that a connection here has:
 * a receiver gets none.
 */
static ssize_t receive_message(int behind, struct msghdr *msg, int flags)
{
	struct msghdr plain = *msg;
	ssize_t n;

	plain.msg_control = NULL;
	plain.msg_controllen = 0;
	n = rrecvmsg(behind, &plain, flags);
	if (n >= 0) {
		msg->msg_namelen = plain.msg_namelen;
		msg->msg_flags = plain.msg_flags;
		msg->msg_controllen = 0;
	}
	return n;
}

DATA_CALL(ssize_t, recvmsg, (int fd, struct msghdr *msg, int flags), (fd, msg, flags),
	  receive_message(f.behind, msg, flags));
DATA_CALL(ssize_t, sendmsg, (int fd, const struct msghdr *msg, int flags), (fd, msg, flags),
	  rsendmsg(f.behind, msg, flags));

static int receive_messages(int behind, struct mmsghdr *msgs, unsigned int count, int flags)
{
	unsigned int done = 0;

	while (done < count) {
		ssize_t n = receive_message(behind, &msgs[done].msg_hdr, flags & ~MSG_WAITFORONE);

		if (n < 0)
			break;
		msgs[done++].msg_len = (unsigned int)n;
		if (flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
	}
	return done ? (int)done : -1;
}

static int send_messages(int behind, const struct mmsghdr *msgs, unsigned int count, int flags,
			 unsigned int *lengths)
{
	unsigned int done = 0;

	(void)lengths;
	while (done < count) {
		ssize_t n = rsendmsg(behind, &msgs[done].msg_hdr, flags);

		if (n < 0)
			break;
		((struct mmsghdr *)msgs)[done++].msg_len = (unsigned int)n;
	}
	return done ? (int)done : -1;
}

DATA_CALL(int, recvmmsg,
	  (int fd, struct mmsghdr *msgs, unsigned int count, int flags, struct timespec *timeout),
	  (fd, msgs, count, flags, timeout), receive_messages(f.behind, msgs, count, flags));
DATA_CALL(int, sendmmsg, (int fd, struct mmsghdr *msgs, unsigned int count, int flags),
	  (fd, msgs, count, flags), send_messages(f.behind, msgs, count, flags, NULL));

enum { MAPPED_AT_ONCE = 1 << 20 };

/* A part of a file, mapped and written. Files that cannot be mapped are read. */
static ssize_t send_part(int behind, int from, off_t at, size_t size)
{
	off_t start = at & ~(off_t)4095;
	size_t lead = (size_t)(at - start);
	char *map = mmap(NULL, size + lead, PROT_READ, MAP_SHARED, from, start);
	char data[16384];
	ssize_t n;

	if (map != MAP_FAILED) {
		n = rwrite(behind, map + lead, size);
		munmap(map, size + lead);
		return n;
	}
	n = syscall(SYS_pread64, from, data, size < sizeof(data) ? size : sizeof(data), at);
	return n > 0 ? rwrite(behind, data, (size_t)n) : n;
}

static ssize_t send_file(int behind, int from, off_t *offset, size_t count)
{
	off_t at = offset ? *offset : (off_t)syscall(SYS_lseek, from, 0, SEEK_CUR);
	size_t done = 0, left;
	ssize_t n = 0;
	struct stat st;

	if (at < 0 || fstat(from, &st))
		return -1;
	left = st.st_size > at ? (size_t)(st.st_size - at) : 0;
	if (left > count)
		left = count;
	while (done < left) {
		size_t piece = left - done < MAPPED_AT_ONCE ? left - done : MAPPED_AT_ONCE;

		n = send_part(behind, from, at + (off_t)done, piece);
		if (n <= 0)
			break;
		done += (size_t)n;
		if ((size_t)n < piece)
			break;
	}
	if (!done && n < 0)
		return -1;
	if (offset)
		*offset = at + (off_t)done;
	else
		syscall(SYS_lseek, from, at + (off_t)done, SEEK_SET);
	return (ssize_t)done;
}

DATA_CALL(ssize_t, sendfile, (int fd, int from, off_t *offset, size_t count),
	  (fd, from, offset, count), send_file(f.behind, from, offset, count));
DATA_CALL(ssize_t, sendfile64, (int fd, int from, off_t *offset, size_t count),
	  (fd, from, offset, count), send_file(f.behind, from, offset, count));
