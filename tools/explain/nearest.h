/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names that a mistyped one may have meant. */
#ifndef TOOLS_EXPLAIN_NEAREST_H
#define TOOLS_EXPLAIN_NEAREST_H

enum { NEAREST_MAX = 3 };

struct nearest {
	const char *wanted;
	const char *names[NEAREST_MAX]; /* the best first; NULL: no more */
	unsigned int distance[NEAREST_MAX];
};

/* One more candidate. Names that differ in more than a third of their letters are not kept. */
void nearest_offer(struct nearest *n, const char *name);

#endif
