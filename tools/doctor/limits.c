/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Resource limits: which of them matter, and which do not although people think so. */
#include <stddef.h>
#include <sys/resource.h>

#include "doctor/checks.h"
#include "doctor/finding.h"

#define FEW_DESCRIPTORS  64
#define MANY_DESCRIPTORS 1024
#define SMALL_FILE       (256ull << 20)
#define SMALL_SPACE      (1ull << 30)

static bool below(int which, unsigned long long wanted, unsigned long long *value)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)which, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return false;
	*value = limit.rlim_cur;
	return limit.rlim_cur < wanted;
}

static bool check_descriptors(void)
{
	unsigned long long value;

	if (below(RLIMIT_NOFILE, FEW_DESCRIPTORS, &value)) {
		finding_problem("ulimit -n 1024, or more",
				"limits: %llu open descriptors are too few for a device and a peer",
				value);
		return false;
	}
	if (below(RLIMIT_NOFILE, MANY_DESCRIPTORS, &value)) {
		finding_note("ulimit -n 1024, or more, for jobs of many processes",
			     "limits: %llu open descriptors; each neighbour process takes a few",
			     value);
		return false;
	}
	return true;
}

static bool check_sizes(void)
{
	unsigned long long value;
	bool good = true;

	if (below(RLIMIT_FSIZE, SMALL_FILE, &value)) {
		finding_problem(
			"ulimit -f unlimited",
			"limits: files of at most %llu bytes (RLIMIT_FSIZE), which holds for shared memory, too",
			value);
		good = false;
	}
	if (below(RLIMIT_AS, SMALL_SPACE, &value)) {
		finding_note(
			"ulimit -v unlimited",
			"limits: %llu bytes of address space (RLIMIT_AS); large queues may not fit",
			value);
		good = false;
	}
	return good;
}

void check_limits(void)
{
	unsigned long long value;
	bool good = check_descriptors() & check_sizes();

	if (below(RLIMIT_MEMLOCK, 64ull << 10, &value))
		finding_note(
			NULL,
			"limits: %llu bytes may be locked (ulimit -l); verbatim locks nothing, but some programs test "
			"the limit themselves",
			value);
	if (good)
		finding_ok("limits: descriptors, file size and address space suffice");
}
