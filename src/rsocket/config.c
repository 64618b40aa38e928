/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reading the files. One that is missing or holds no number changes nothing. */
#include "rsocket/config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/sys.h"

#define FOLDER    "/etc/rdma/rsocket/"
#define KEEPALIVE "/proc/sys/net/ipv4/tcp_keepalive_time"

static struct vb_rs_config config = {
	.sizes =
		{
			.send_queue = 384,
			.receive_queue = 384,
			.inline_bytes = 64,
			.send_buffer = 1 << 17,
			.receive_buffer = 1 << 17,
		},
	.polling_ns = 10000,
	.wake_ms = 500,
	.keepalive_s = 7200,
};

static uint32_t number(const char *path, uint32_t fallback, uint32_t most)
{
	char text[32] = "";
	unsigned long value;
	char *end;
	ssize_t n;
	int fd = vb_sys_open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return fallback;
	n = vb_sys_read(fd, text, sizeof(text) - 1);
	vb_sys_close(fd);
	if (n <= 0)
		return fallback;
	value = strtoul(text, &end, 10);
	if (end == text)
		return fallback;
	return value > most ? most : (uint32_t)value;
}

static void read_all(void)
{
	struct vb_stream_sizes *s = &config.sizes;

	s->send_queue = (uint16_t)number(FOLDER "sqsize_default", s->send_queue, UINT16_MAX);
	s->receive_queue = (uint16_t)number(FOLDER "rqsize_default", s->receive_queue, UINT16_MAX);
	s->inline_bytes = number(FOLDER "inline_default", s->inline_bytes, UINT16_MAX);
	s->receive_buffer = number(FOLDER "mem_default", s->receive_buffer, INT32_MAX);
	s->send_buffer = number(FOLDER "wmem_default", s->send_buffer, INT32_MAX);
	s->iomaps = number(FOLDER "iomap_size", s->iomaps, UINT16_MAX);
	config.polling_ns = 1000ull * number(FOLDER "polling_time",
					     (uint32_t)config.polling_ns / 1000, 1000000);
	config.wake_ms = number(FOLDER "wake_up_interval", config.wake_ms, 5000);
	config.keepalive_s = number(KEEPALIVE, config.keepalive_s, INT32_MAX);
	if (!config.wake_ms)
		config.wake_ms = 1;
	vb_stream_sizes_fit(s);
}

const struct vb_rs_config *vb_rs_config(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_all);
	return &config;
}
