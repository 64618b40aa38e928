/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: the rings of many channels between two processes lie in few memfds, the first channel's in
 * one of its own; all of them are gone when the channels are. The message that shows a rack comes
 * before all others that name it, also where both sides ask at the same time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "host/rack.h"
#include "unit/host/end.h"

enum { ENGINES = 300 };

static int many_engines(int sock, void *arg)
{
	static struct end end; /* its thread outlives this function */

	(void)arg;
	end_start(&end);
	for (int i = 0; i < ENGINES; i++)
		tell(sock, end_qp(&end, end_engine(&end), NULL));
	hear(sock);
	return 0;
}

static int rings_mapped(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "verbatim-ring") != NULL;
	fclose(f);
	return n;
}

static void expect_rings(int most)
{
	for (int i = 0; i < END_PATIENCE_MS / 10 && rings_mapped() > most; i++)
		end_sleep_ms(10);
	assert_true(rings_mapped() <= most);
}

static void test_few_mappings(void **state)
{
	static struct vb_channel *ch[ENGINES];
	static uint32_t qpn[ENGINES];
	enum vb_contact why;
	struct child child;
	struct end end;

	(void)state;
	uint32_t engine = end_start_beside(&end, &child, many_engines, &qpn[0]);

	for (int i = 1; i < ENGINES; i++)
		qpn[i] = (uint32_t)hear(child.sock);
	ch[0] = end_find(&end, engine, qpn[0], END_PATIENCE_MS, &why);
	assert_non_null(ch[0]);
	assert_int_equal(ch[0]->own_rack->count, 1);
	assert_int_equal(rings_mapped(), 2);
	for (int i = 1; i < ENGINES; i++) {
		ch[i] = end_find(&end, engine, qpn[i], END_PATIENCE_MS, &why);
		assert_non_null(ch[i]);
		/* No two of them share memory. */
		assert_ptr_not_equal(ch[i]->own_half, ch[i - 1]->own_half);
		assert_ptr_not_equal(ch[i]->peer_half, ch[i - 1]->peer_half);
	}
	assert_true(rings_mapped() < ENGINES / 4);
	for (int i = 0; i < ENGINES; i++)
		end_close(&end, ch[i]);
	/* The last rack of each side has places left. */
	expect_rings(2);
	tell(child.sock, 0);
	child_join(&child);
	assert_true(end_await(&end.deaths, 1, END_PATIENCE_MS));
	expect_rings(0);
	end_stop(&end);
}

/* Asks back for a channel of another engine each time that one has come, before that is answered. */
static uint32_t back[ENGINES];
static _Atomic int asked;

static void ask_back(struct end *end)
{
	enum vb_contact why;
	int i = atomic_fetch_add(&asked, 1);

	if (i < ENGINES / 4)
		vb_channel_find(end->node, end_engine(end), back[i], &why);
}

static int asks_back(int sock, void *arg)
{
	static struct end end;

	(void)arg;
	for (int i = 0; i < ENGINES / 4; i++)
		back[i] = (uint32_t)hear(sock);
	end_start(&end);
	end.at_up = ask_back; /* no engine can be asked for yet */
	for (int i = 0; i < ENGINES / 4; i++)
		tell(sock, end_qp(&end, end_engine(&end), NULL));
	hear(sock);
	return 0;
}

static void test_both_ask(void **state)
{
	enum vb_contact why;
	struct child child;
	struct end end;

	(void)state;
	child_start(&child, asks_back, NULL);
	end_start(&end);
	for (int i = 0; i < ENGINES / 4; i++)
		tell(child.sock, end_qp(&end, end_engine(&end), NULL));
	uint32_t engine = end_engine(&end);

	for (int i = 0; i < ENGINES / 4; i++) {
		uint32_t qpn = (uint32_t)hear(child.sock);

		assert_non_null(end_find(&end, engine, qpn, END_PATIENCE_MS, &why));
	}
	/* Its own of them come, too. */
	assert_true(end_await(&end.ups, ENGINES / 2, END_PATIENCE_MS));
	assert_int_equal(atomic_load(&end.deaths), 0);
	tell(child.sock, 0);
	child_join(&child);
	assert_true(end_await(&end.deaths, 1, END_PATIENCE_MS));
	end_stop(&end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_mappings),
		cmocka_unit_test(test_both_ask),
	};

	return cmocka_run_group_tests_name("host/rack", tests, NULL, NULL);
}
