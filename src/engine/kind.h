/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Kinds of queue pairs: ordinary ones, XRC receivers (handles, which programs hold, and bodies,
 * which run the protocol), those of tag-matching queues, raw packet ones. A constant table of the
 * kind's room holds what differs from the others; src/provider lists the kinds.
 *
 * "Engine's lock": the lock of the queue pair's engine is held around the call.
 */
#ifndef VB_ENGINE_KIND_H
#define VB_ENGINE_KIND_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct vb_env;
struct vb_events_got;
struct vb_qp;
struct vb_run;

struct vb_qp_kind {
	const struct vb_env *env; /* of the protocol; NULL: the protocol does not run here */
	/*
	 * It sends and receives frames: requests have no destination, and no packet of the protocol
	 * is for its number.
	 */
	bool frames;
	/* Nothing is special about its messages: links may take a short way (link->express). */
	bool plain;
	/*
	 * Places of the send queue for requests of the device's own, and how many elements such a
	 * request may have.
	 */
	uint32_t own_requests, own_sge;

	/*
	 * Creation. NULL: nothing to do. check() judges attributes that only this kind has; mask,
	 * type and create_flags were checked.
	 */
	int (*check)(const struct ibv_qp_init_attr_ex *attr);
	/* Replaces all functions that follow. */
	int (*create)(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr,
		      struct ibv_qp **qp);
	/*
	 * Allocates what only this kind has, before there is an engine. close() frees it, also
	 * where open() failed.
	 */
	int (*open)(struct vb_qp *qp, struct ibv_context *ctx,
		    const struct ibv_qp_init_attr_ex *attr);
	void (*close)(struct vb_qp *qp);
	/*
	 * The engine is known and serves the CQs. detach() is called when the queue pair is
	 * destroyed.
	 */
	int (*attach)(struct vb_qp *qp);
	void (*detach)(struct vb_qp *qp);

	/* Calls about a queue pair. NULL: the kind has no objection. */
	int (*may_modify)(const struct vb_qp *qp);
	/* The queue pair in which the protocol runs. NULL: this one. */
	struct vb_qp *(*body)(struct vb_qp *handle);
	/*
	 * Engine's lock, before attributes are read: takes over what other processes have changed.
	 * NULL: no other process can.
	 */
	void (*pull)(struct vb_qp *qp);
	/* Engine's lock: the running PSNs for ibv_query_qp(3). */
	void (*psns)(const struct vb_qp *qp, struct ibv_qp_attr *attr);
	/* The two halves of ibv_destroy_qp(3), as in verbs/ops.h. */
	int (*retire)(struct vb_qp *qp, struct vb_events_got *got);
	void (*free)(struct vb_qp *qp);

	/*
	 * Engine's lock: attributes, state or rights have changed. Publishes them for readers
	 * without the lock.
	 */
	void (*publish)(struct vb_qp *qp);
	/* Engine's lock: raises an affiliated event. */
	void (*event)(struct vb_qp *qp, enum ibv_event_type type);
	/*
	 * Engine's lock: RESET or destroyed. Forgets the queue pair's work and removes its
	 * completions from the CQs.
	 */
	void (*clear)(struct vb_qp *qp);

	/* Engine's lock: a run has arrived; `payload` is run->length bytes. */
	void (*receive)(struct vb_qp *qp, const struct vb_run *run, const void *payload);
	/*
	 * Engine's lock, before the protocol runs, and after. True: something waits, call again.
	 * NULL: never.
	 */
	bool (*pump)(struct vb_qp *qp);
	bool (*ran)(struct vb_qp *qp);
};

#endif
