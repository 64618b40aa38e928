/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Symbols by version, as programs that call dlvsym(3) and stock providers bind them: which form a
 * version gives, and that what is only there to resolve refuses plainly when it is called.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(condition, name)                                                                 \
	do {                                                                                  \
		if (!(condition)) {                                                           \
			fprintf(stderr, "line %d: %s: %s (%s)\n", __LINE__, name, #condition, \
				strerror(errno));                                             \
			exit(1);                                                              \
		}                                                                             \
	} while (0)

static void *library;

static void *get(const char *name, const char *version)
{
	void *symbol = dlvsym(library, name, version);

	MUST(symbol, name);
	return symbol;
}

/* A function pointer out of an object pointer, which ISO C does not convert. */
#define AS(type, symbol) (*(type *)(void *)&(symbol))

typedef void *(*refusal)(void *, void *, void *, void *);
typedef void (*log_line)(void *, uint32_t, const char *, ...);

/* IBVERBS_1.0: refused in the manner of each, the object pointers never followed. */
static void check_legacy(void)
{
	static const char *const null[] = {
		"ibv_open_device", "ibv_alloc_pd",  "ibv_reg_mr",    "ibv_create_cq",
		"ibv_create_srq",  "ibv_create_qp", "ibv_create_ah", "ibv_get_device_name",
	};
	static const char *const number[] = {
		"ibv_dealloc_pd",   "ibv_dereg_mr",   "ibv_destroy_cq",   "ibv_destroy_qp",
		"ibv_query_device", "ibv_query_port", "ibv_attach_mcast", "ibv_resize_cq",
	};
	static const char *const minus_one[] = {
		"ibv_close_device",
		"ibv_get_cq_event",
		"ibv_query_gid",
		"ibv_query_pkey",
	};
	void *symbol = get("ibv_get_device_list", "IBVERBS_1.0");
	int count = 5;

	MUST(!AS(refusal, symbol)(&count, NULL, NULL, NULL) && !count, "ibv_get_device_list");
	for (size_t i = 0; i < sizeof(null) / sizeof(null[0]); i++) {
		symbol = get(null[i], "IBVERBS_1.0");
		errno = 0;
		MUST(!AS(refusal, symbol)(NULL, NULL, NULL, NULL), null[i]);
		MUST(errno == EOPNOTSUPP, null[i]);
		MUST(symbol != dlvsym(library, null[i], "IBVERBS_1.1"), null[i]);
	}
	for (size_t i = 0; i < sizeof(number) / sizeof(number[0]); i++) {
		symbol = get(number[i], "IBVERBS_1.0");
		MUST((int)(intptr_t)AS(refusal, symbol)(NULL, NULL, NULL, NULL) == EOPNOTSUPP,
		     number[i]);
	}
	for (size_t i = 0; i < sizeof(minus_one) / sizeof(minus_one[0]); i++) {
		symbol = get(minus_one[i], "IBVERBS_1.0");
		MUST((int)(intptr_t)AS(refusal, symbol)(NULL, NULL, NULL, NULL) == -1,
		     minus_one[i]);
	}
}

static void check_private(const char *version, const char *driver)
{
	struct ibv_cq cq = {.comp_events_completed = 7};
	struct ibv_context ctx = {.cmd_fd = -1};
	void *symbol = get(driver, version);

	AS(refusal, symbol)(NULL, NULL, NULL, NULL);
	symbol = get("ibv_cmd_create_qp_ex", version);
	MUST((int)(intptr_t)AS(refusal, symbol)(NULL, NULL, NULL, NULL) == EOPNOTSUPP, version);
	symbol = get("ibv_cmd_poll_cq", version);
	MUST((int)(intptr_t)AS(refusal, symbol)(NULL, NULL, NULL, NULL) == -1, version);
	symbol = get("verbs_open_device", version);
	MUST(!AS(refusal, symbol)(NULL, NULL, NULL, NULL), version);
	symbol = get("ibv_read_ibdev_sysfs_file", version);
	MUST((int)(intptr_t)AS(refusal, symbol)(NULL, NULL, NULL, NULL) == -1, version);
	symbol = get("verbs_init_cq", version);
	AS(refusal, symbol)(&cq, &ctx, NULL, &cq);
	MUST(cq.context == &ctx && cq.cq_context == &cq && !cq.comp_events_completed, version);
	symbol = get("__verbs_log", version);
	AS(log_line, symbol)(NULL, 4, "%d", 1);
	AS(log_line, symbol)(NULL, 0, "%d", 1);
	AS(log_line, symbol)(NULL, 999, "%d", 1);
	symbol = get("verbs_allow_disassociate_destroy", version);
	MUST(!*(bool *)symbol, version);
}

/* NCCL and others look these up by hand. */
static void check_public(void)
{
	static const struct {
		const char *name, *version;
	} known[] = {
		{"ibv_open_device", "IBVERBS_1.1"},
		{"ibv_reg_mr_iova2", "IBVERBS_1.8"},
		{"ibv_query_ece", "IBVERBS_1.10"},
		{"ibv_reg_dmabuf_mr", "IBVERBS_1.12"},
		{"ibv_query_qp_data_in_order", "IBVERBS_1.14"},
		{"ibv_query_port_speed", "IBVERBS_1.16"},
		{"ibv_create_comp_cntr", "IBVERBS_1.18"},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		MUST(get(known[i].name, known[i].version) == dlsym(library, known[i].name),
		     known[i].name);
}

int main(void)
{
	library = dlopen("libibverbs.so.1", RTLD_NOW);
	MUST(library, "libibverbs.so.1");
	check_public();
	check_legacy();
	check_private("IBVERBS_PRIVATE_34", "verbs_register_driver_34");
	check_private("IBVERBS_PRIVATE_64", "verbs_register_driver_64");
	check_private("IBVERBS_PRIVATE_65", "verbs_register_driver_65");
	return 0;
}
