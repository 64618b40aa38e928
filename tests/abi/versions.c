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

/*
 * How a function that is only there to resolve says no; the object pointers it is given are never
 * followed.
 */
enum manner { ERRNO, MINUS_ONE, NIL, VOID };

struct refused {
	const char *name;
	enum manner manner;
};

/*
 * Every function of IBVERBS_1.0 that has another form since 1.1, but for the two that
 * check_legacy() looks at by itself.
 */
static const struct refused legacy[] = {
	{"ibv_ack_async_event", VOID},   {"ibv_ack_cq_events", VOID},
	{"ibv_alloc_pd", NIL},           {"ibv_attach_mcast", ERRNO},
	{"ibv_close_device", MINUS_ONE}, {"ibv_create_ah", NIL},
	{"ibv_create_cq", NIL},          {"ibv_create_qp", NIL},
	{"ibv_create_srq", NIL},         {"ibv_dealloc_pd", ERRNO},
	{"ibv_dereg_mr", ERRNO},         {"ibv_destroy_ah", ERRNO},
	{"ibv_destroy_cq", ERRNO},       {"ibv_destroy_qp", ERRNO},
	{"ibv_destroy_srq", ERRNO},      {"ibv_detach_mcast", ERRNO},
	{"ibv_free_device_list", VOID},  {"ibv_get_async_event", MINUS_ONE},
	{"ibv_get_cq_event", MINUS_ONE}, {"ibv_get_device_name", NIL},
	{"ibv_modify_qp", ERRNO},        {"ibv_modify_srq", ERRNO},
	{"ibv_open_device", NIL},        {"ibv_query_device", ERRNO},
	{"ibv_query_gid", MINUS_ONE},    {"ibv_query_pkey", MINUS_ONE},
	{"ibv_query_port", ERRNO},       {"ibv_query_qp", ERRNO},
	{"ibv_query_srq", ERRNO},        {"ibv_reg_mr", NIL},
	{"ibv_resize_cq", ERRNO},
};

/*
 * What only providers call, by the first and, where a later node lacks it, the last private node
 * that has it.
 */
static const struct refused from_25[] = {
	{"_verbs_init_and_alloc_context", NIL},
	{"execute_ioctl", ERRNO},
	{"ibv_cmd_advise_mr", ERRNO},
	{"ibv_cmd_alloc_dm", ERRNO},
	{"ibv_cmd_alloc_mw", ERRNO},
	{"ibv_cmd_alloc_pd", ERRNO},
	{"ibv_cmd_attach_mcast", ERRNO},
	{"ibv_cmd_close_xrcd", ERRNO},
	{"ibv_cmd_create_ah", ERRNO},
	{"ibv_cmd_create_counters", ERRNO},
	{"ibv_cmd_create_cq", ERRNO},
	{"ibv_cmd_create_cq_ex", ERRNO},
	{"ibv_cmd_create_flow", ERRNO},
	{"ibv_cmd_create_flow_action_esp", ERRNO},
	{"ibv_cmd_create_qp", ERRNO},
	{"ibv_cmd_create_qp_ex", ERRNO},
	{"ibv_cmd_create_qp_ex2", ERRNO},
	{"ibv_cmd_create_rwq_ind_table", ERRNO},
	{"ibv_cmd_create_srq", ERRNO},
	{"ibv_cmd_create_srq_ex", ERRNO},
	{"ibv_cmd_create_wq", ERRNO},
	{"ibv_cmd_dealloc_mw", ERRNO},
	{"ibv_cmd_dealloc_pd", ERRNO},
	{"ibv_cmd_dereg_mr", ERRNO},
	{"ibv_cmd_destroy_ah", ERRNO},
	{"ibv_cmd_destroy_counters", ERRNO},
	{"ibv_cmd_destroy_cq", ERRNO},
	{"ibv_cmd_destroy_flow", ERRNO},
	{"ibv_cmd_destroy_flow_action", ERRNO},
	{"ibv_cmd_destroy_qp", ERRNO},
	{"ibv_cmd_destroy_rwq_ind_table", ERRNO},
	{"ibv_cmd_destroy_srq", ERRNO},
	{"ibv_cmd_destroy_wq", ERRNO},
	{"ibv_cmd_detach_mcast", ERRNO},
	{"ibv_cmd_free_dm", ERRNO},
	{"ibv_cmd_get_context", ERRNO},
	{"ibv_cmd_modify_cq", ERRNO},
	{"ibv_cmd_modify_flow_action_esp", ERRNO},
	{"ibv_cmd_modify_qp", ERRNO},
	{"ibv_cmd_modify_qp_ex", ERRNO},
	{"ibv_cmd_modify_srq", ERRNO},
	{"ibv_cmd_modify_wq", ERRNO},
	{"ibv_cmd_open_qp", ERRNO},
	{"ibv_cmd_open_xrcd", ERRNO},
	{"ibv_cmd_poll_cq", MINUS_ONE},
	{"ibv_cmd_post_recv", ERRNO},
	{"ibv_cmd_post_send", ERRNO},
	{"ibv_cmd_post_srq_recv", ERRNO},
	{"ibv_cmd_query_context", ERRNO},
	{"ibv_cmd_query_mr", ERRNO},
	{"ibv_cmd_query_port", ERRNO},
	{"ibv_cmd_query_qp", ERRNO},
	{"ibv_cmd_query_srq", ERRNO},
	{"ibv_cmd_read_counters", ERRNO},
	{"ibv_cmd_reg_dm_mr", ERRNO},
	{"ibv_cmd_reg_mr", ERRNO},
	{"ibv_cmd_req_notify_cq", ERRNO},
	{"ibv_cmd_rereg_mr", ERRNO},
	{"ibv_cmd_resize_cq", ERRNO},
	{"verbs_open_device", NIL},
	{"verbs_set_ops", VOID},
	{"verbs_uninit_context", VOID},
};
static const struct refused only_25[] = {{"ibv_cmd_query_device_ex", ERRNO}};
static const struct refused from_25_to_34[] = {{"ibv_cmd_query_device", ERRNO}};
static const struct refused from_33[] = {{"ibv_cmd_query_device_any", ERRNO}};
static const struct refused from_34[] = {
	{"ibv_cmd_create_cq_ex2", ERRNO},
	{"ibv_cmd_reg_dmabuf_mr", ERRNO},
};
static const struct refused from_59[] = {
	{"ibv_cmd_alloc_dmah", ERRNO}, {"ibv_cmd_export_dmabuf_fd", MINUS_ONE},
	{"ibv_cmd_free_dmah", ERRNO},  {"ibv_cmd_query_port_speed", ERRNO},
	{"ibv_cmd_reg_mr_ex", ERRNO},
};
static const struct refused from_64[] = {
	{"ibv_dmabuf_heap_alloc", NIL},
	{"ibv_dmabuf_heap_cc_shared_init", NIL},
	{"ibv_dmabuf_heap_destroy", VOID},
	{"ibv_dmabuf_heap_free", VOID},
};
static const struct refused from_65[] = {
	{"ibv_cmd_create_comp_cntr", ERRNO},    {"ibv_cmd_destroy_comp_cntr", ERRNO},
	{"ibv_cmd_inc_comp_cntr", ERRNO},       {"ibv_cmd_inc_err_comp_cntr", ERRNO},
	{"ibv_cmd_qp_attach_comp_cntr", ERRNO}, {"ibv_cmd_query_comp_cntr_caps", ERRNO},
	{"ibv_cmd_read_comp_cntr", ERRNO},      {"ibv_cmd_read_err_comp_cntr", ERRNO},
	{"ibv_cmd_set_comp_cntr", ERRNO},       {"ibv_cmd_set_err_comp_cntr", ERRNO},
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const struct {
	int first, last;
	const struct refused *functions;
	size_t count;
} provider_only[] = {
	{25, 65, from_25, COUNT(from_25)},
	{25, 25, only_25, COUNT(only_25)},
	{25, 34, from_25_to_34, COUNT(from_25_to_34)},
	{33, 65, from_33, COUNT(from_33)},
	{34, 65, from_34, COUNT(from_34)},
	{59, 65, from_59, COUNT(from_59)},
	{64, 65, from_64, COUNT(from_64)},
	{65, 65, from_65, COUNT(from_65)},
};

/* The numbers that the private nodes of releases 25 to 65 have. */
static const int nodes[] = {25, 33, 34, 57, 59, 64, 65};

static void check_refused(const char *version, const struct refused *functions, size_t count)
{
	static const intptr_t told[] = {[ERRNO] = EOPNOTSUPP, [MINUS_ONE] = -1, [NIL] = 0};

	for (size_t i = 0; i < count; i++) {
		const struct refused *f = &functions[i];
		void *symbol = get(f->name, version);
		void *answer;

		errno = 0;
		answer = AS(refusal, symbol)((void *)1, (void *)1, (void *)1, (void *)1);
		if (f->manner == VOID)
			continue;
		MUST(f->manner == NIL ? !answer : (int)(intptr_t)answer == told[f->manner],
		     f->name);
		MUST(errno == EOPNOTSUPP, f->name);
	}
}

static void check_legacy(void)
{
	void *symbol = get("ibv_get_device_list", "IBVERBS_1.0");
	int count = 5;

	errno = 0;
	MUST(!AS(refusal, symbol)(&count, NULL, NULL, NULL) && !count, "ibv_get_device_list");
	MUST(errno == EOPNOTSUPP, "ibv_get_device_list");
	MUST(!AS(refusal, symbol)(NULL, NULL, NULL, NULL), "ibv_get_device_list");
	symbol = get("ibv_get_device_guid", "IBVERBS_1.0");
	MUST(!AS(refusal, symbol)(NULL, NULL, NULL, NULL), "ibv_get_device_guid");
	check_refused("IBVERBS_1.0", legacy, COUNT(legacy));
	for (size_t i = 0; i < COUNT(legacy); i++) {
		symbol = get(legacy[i].name, "IBVERBS_1.0");
		MUST(symbol != dlvsym(library, legacy[i].name, "IBVERBS_1.1"), legacy[i].name);
	}
}

/* ibv_query_gid_type, which ibv_devinfo and pyverbs call on devices of ours: 0, or -1 and errno. */
static void check_gid_type(const char *version, struct ibv_context *ctx)
{
	typedef int (*query)(struct ibv_context *, uint8_t, unsigned int, int *);
	static const struct {
		uint8_t port;
		unsigned int index;
	} wrong[] = {{0, 0}, {2, 0}, {1, 64}, {1, UINT32_MAX}, {1, 1u << 31}};
	void *symbol = get("ibv_query_gid_type", version);
	struct ibv_gid_entry entry;
	int type = 7;

	for (size_t i = 0; i < COUNT(wrong); i++) {
		errno = 0;
		MUST(AS(query, symbol)(ctx, wrong[i].port, wrong[i].index, &type) == -1, version);
		MUST(errno == EINVAL && type == 7, version);
	}
	errno = 0;
	MUST(AS(query, symbol)(ctx, 1, 0, NULL) == -1 && errno == EINVAL, version);
	errno = 0;
	MUST(AS(query, symbol)(NULL, 1, 0, &type) == -1 && errno == EINVAL, version);
	for (unsigned int i = 0; i < 64; i++) {
		bool used = !ibv_query_gid_ex(ctx, 1, i, &entry, 0);

		MUST(!AS(query, symbol)(ctx, 1, i, &type), version);
		MUST(type == used,
		     version); /* RoCE v2 is 1 here; an empty slot is of the first type */
	}
}

/* Symbols that tell of files of a kernel's device: -1 and ENOENT. */
static void check_no_file(const char *name, const char *version)
{
	void *symbol = get(name, version);

	errno = 0;
	MUST((int)(intptr_t)AS(refusal, symbol)(NULL, NULL, NULL, NULL) == -1, name);
	MUST(errno == ENOENT, name);
}

static void check_provider_only(int node, const char *version)
{
	for (size_t i = 0; i < COUNT(provider_only); i++) {
		if (node >= provider_only[i].first && node <= provider_only[i].last)
			check_refused(version, provider_only[i].functions, provider_only[i].count);
	}
}

/* The words of opcodes, never NULL; and lines of any level. */
static void check_from_34(const char *version)
{
	typedef const char *(*words)(int);
	void *symbol = get("ibv_wr_opcode_str", version);

	MUST(!strcmp(AS(words, symbol)(IBV_WR_SEND), "send"), version);
	MUST(!strcmp(AS(words, symbol)(-1), "unknown"), version);
	MUST(!strcmp(AS(words, symbol)(1000), "unknown"), version);
	symbol = get("__verbs_log", version);
	AS(log_line, symbol)(NULL, 4, "%d", 1);
	AS(log_line, symbol)(NULL, 0, "%d", 1);
	AS(log_line, symbol)(NULL, 999, "%d", 1);
}

/* One private node: what is refused, what is served, and what has nothing to refuse. */
static void check_private(int node, struct ibv_context *device)
{
	struct ibv_cq cq = {.comp_events_completed = 7};
	struct ibv_context ctx = {.cmd_fd = -1};
	char version[32], driver[32];
	void *symbol;

	snprintf(version, sizeof(version), "IBVERBS_PRIVATE_%d", node);
	snprintf(driver, sizeof(driver), "verbs_register_driver_%d", node);
	symbol = get(driver, version);
	AS(refusal, symbol)(NULL, NULL, NULL, NULL);
	check_provider_only(node, version);
	check_no_file("ibv_read_ibdev_sysfs_file", version);
	if (node == 25)
		check_no_file("ibv_get_fw_ver", version);
	if (node >= 34)
		check_from_34(version);
	symbol = get("__ioctl_final_num_attrs", version);
	MUST(!AS(refusal, symbol)((void *)3, NULL, NULL, NULL), version);
	symbol = get("verbs_init_cq", version);
	AS(refusal, symbol)(&cq, &ctx, NULL, &cq);
	MUST(cq.context == &ctx && cq.cq_context == &cq && !cq.comp_events_completed, version);
	symbol = get("verbs_allow_disassociate_destroy", version);
	MUST(!*(bool *)symbol, version);
	check_gid_type(version, device);
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
	struct ibv_device **list;
	struct ibv_context *ctx;

	library = dlopen("libibverbs.so.1", RTLD_NOW);
	MUST(library, "libibverbs.so.1");
	check_public();
	check_legacy();
	list = ibv_get_device_list(NULL);
	MUST(list && list[0], "a device");
	ctx = ibv_open_device(list[0]);
	MUST(ctx, ibv_get_device_name(list[0]));
	for (size_t i = 0; i < COUNT(nodes); i++)
		check_private(nodes[i], ctx);
	MUST(!ibv_close_device(ctx), "close");
	ibv_free_device_list(list);
	return 0;
}
