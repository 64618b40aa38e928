/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Prints the layout of the public headers it is compiled against, one fact a line: the size of a
 * structure, offset and size of a member, the value of an enumerator. -DWITH_NEW=1 adds what
 * came after rdma-core 44.
 *
 * Offsets in verbs_context count from its context, since that is how programs find them.
 */
#include <stddef.h>
#include <stdio.h>

#include <infiniband/opcode.h>
#include <infiniband/sa.h>
#include <infiniband/tm_types.h>
#include <infiniband/verbs.h>
#if __has_include(<rdma/rsocket.h>) /* another package of the distribution */
#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>
#define WITH_RDMACM 1
#endif

#define ORIGIN(type)                               \
	_Generic((type *)0, struct verbs_context * \
		 : offsetof(struct verbs_context, context), default : 0)

#define TYPE(type) printf("%s size %zu\n", #type, sizeof(type));
#define FIELD(type, member)                       \
	printf("%s.%s %ld %zu\n", #type, #member, \
	       (long)offsetof(type, member) - (long)ORIGIN(type), sizeof(((type *)0)->member));
#define VALUE(name) printf("%s %lld\n", #name, (long long)(name));

int main(void)
{
#include "layout_44.inc"
#if WITH_NEW
#include "layout_new.inc"
#endif
#if WITH_RDMACM
#include "layout_rdmacm_44.inc"
#if WITH_NEW
#include "layout_rdmacm_new.inc"
#endif
#endif
	return 0;
}
