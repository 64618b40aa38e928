/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How far two names are from each other: letters to insert, remove or replace. */
#include "explain/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define LONGEST 64

static unsigned int least(unsigned int a, unsigned int b, unsigned int c)
{
	unsigned int m = a < b ? a : b;

	return m < c ? m : c;
}

static unsigned int distance(const char *a, const char *b)
{
	unsigned int row[LONGEST + 1];
	size_t la = strlen(a), lb = strlen(b);

	if (la > LONGEST || lb > LONGEST)
		return LONGEST;
	for (unsigned int j = 0; j <= lb; j++)
		row[j] = j;
	for (unsigned int i = 1; i <= la; i++) {
		unsigned int corner = row[0];

		row[0] = i;
		for (unsigned int j = 1; j <= lb; j++) {
			unsigned int above = row[j];
			bool same = toupper((unsigned char)a[i - 1]) ==
				    toupper((unsigned char)b[j - 1]);

			row[j] = least(above + 1, row[j - 1] + 1, corner + !same);
			corner = above;
		}
	}
	return row[lb];
}

void nearest_offer(struct nearest *n, const char *name)
{
	unsigned int d = distance(n->wanted, name);
	size_t longest = strlen(name) > strlen(n->wanted) ? strlen(name) : strlen(n->wanted);
	int at = NEAREST_MAX;

	if (d * 3 > longest)
		return;
	while (at > 0 && (!n->names[at - 1] || n->distance[at - 1] > d))
		at--;
	if (at == NEAREST_MAX)
		return;
	memmove(&n->names[at + 1], &n->names[at],
		(size_t)(NEAREST_MAX - 1 - at) * sizeof(n->names[0]));
	memmove(&n->distance[at + 1], &n->distance[at],
		(size_t)(NEAREST_MAX - 1 - at) * sizeof(n->distance[0]));
	n->names[at] = name;
	n->distance[at] = d;
}
