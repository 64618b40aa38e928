/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The table of reasons: code, name, meaning, the usual cause, and what to do about it. The texts
 * are read by people who write programs: they name the call, the attribute or the variable. A row
 * without one of the five does not compile. base/reason.h says what a reason is.
 */
#ifndef VB_BASE_REASON_TABLE_H
#define VB_BASE_REASON_TABLE_H

/* clang-format off */
/* X(code, NAME, meaning, cause, cure) */
#define VB_REASONS(X) \
	/* 0x1xx: arguments of a call */ \
	X(0x101, ARG, "an argument has a value that the call does not take", \
	  "A pointer is NULL, a number is out of its range, or two arguments contradict each other.", \
	  "Compare the argument that the message names with the manual page of the call (`man " \
	  "ibv_create_qp`, ...).") \
	X(0x102, ARG_MASK, "a mask names a bit that is unknown or not allowed here", \
	  "attr_mask, comp_mask or a flags word has a bit that the call does not know, often because " \
	  "the structure was not set to zero.", \
	  "Clear the structure with memset() before you fill it in, and set only the bits that the " \
	  "manual page lists.") \
	X(0x103, ARG_LIMIT, "more was asked for than the device's limit", \
	  "A queue, a list or a number is larger than what ibv_query_device() reports, or the limit " \
	  "of objects of this kind is reached.", \
	  "Ask for at most max_qp_wr, max_sge, max_cqe, ... of ibv_query_device(), and destroy " \
	  "objects that are no longer used.") \
	X(0x104, UNSUPPORTED, "this device does not offer what was asked for", \
	  "The call, the type or the flag needs hardware, or is not built. Many programs ask only to " \
	  "find out (EOPNOTSUPP).", \
	  "If the program goes on, nothing is wrong. docs/coverage.md lists what is offered; switch " \
	  "the feature off in the program's settings otherwise.") \
	X(0x105, HANDLE, "the object does not belong to this context or is already destroyed", \
	  "The object was destroyed before, or it was made on another ibv_context than the one that " \
	  "is used here.", \
	  "Keep one context for objects that work together, and set pointers to NULL after " \
	  "ibv_destroy_*(), ibv_dereg_mr() and ibv_dealloc_pd().") \
	X(0x106, BUSY, "other objects still use this one", \
	  "An object is destroyed before the objects that were made on it: a PD before its MRs and " \
	  "QPs, a CQ before its QPs, an MR before its windows.", \
	  "Destroy in the reverse order: QPs, SRQs and windows first, then MRs and CQs, channels, the " \
	  "PD, and the context last.") \
	X(0x107, NO_MEMORY, "memory or a table of the device is exhausted", \
	  "The process is at its memory limit (RLIMIT_AS, a cgroup), or objects are created and never " \
	  "destroyed.", \
	  "Look at `ulimit -v` and the memory limit of the container, and destroy objects that are no " \
	  "longer used.") \
	X(0x108, PERMISSION, "the caller lacks a privilege", \
	  "Raw packet queue pairs and Q_Keys with the highest bit set need CAP_NET_RAW.", \
	  "Use a Q_Key below 0x80000000; for raw packets run as root or with `setcap cap_net_raw+ep` " \
	  "on the program.") \
	X(0x109, UNMAPPED, "the address range is not mapped with the rights asked for", \
	  "The buffer of ibv_reg_mr() is shorter than the length, was freed, is mapped read-only " \
	  "while the access flags ask for IBV_ACCESS_LOCAL_WRITE, or is memory of a GPU (`verbatim " \
	  "explain GPU_MEMORY`).", \
	  "Register exactly the bytes that were allocated; map files with PROT_WRITE, or register " \
	  "without IBV_ACCESS_LOCAL_WRITE.") \
	X(0x10a, FORKED, "the object was inherited through fork and belongs to the parent", \
	  "The process was forked after the device was opened, and the child uses the parent's " \
	  "context, PD, QP or CQ.", \
	  "Open the device in the child (ibv_open_device() after fork()), or start the child with " \
	  "exec(). In Python use the start method spawn.") \
	X(0x10b, UNREACHABLE, "no link reaches the destination address", \
	  "The GID of ah_attr.grh.dgid is not routed from here, is of the other IP version than the " \
	  "own GID, or was never filled in (all zeros).", \
	  "Exchange GIDs with ibv_query_gid() of the sgid_index that is used, then try `ip route get " \
	  "ADDRESS`. An IPv4 GID is ::ffff:a.b.c.d.") \
	X(0x10c, SYSTEM, "a system call of the device failed", \
	  "A limit (RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_FSIZE), a seccomp filter or a full memory " \
	  "file system refused it; the message has the errno.", \
	  "Run `verbatim doctor`: it tries each system call that is needed and names the limit. Raise " \
	  "it with `ulimit -n` or in the container's settings.") \
	X(0x10d, PORT_TAKEN, "another user or a driver holds the UDP port of RoCEv2", \
	  "UDP port 4791 is bound by another user's process, or by the kernel driver rdma_rxe. Other " \
	  "hosts cannot be reached then; processes of this host can.", \
	  "End that process, or unload the driver (`rdma link delete rxe0`, `modprobe -r rdma_rxe`), " \
	  "let the users share it (VERBATIM_DOMAIN), or use a network namespace of your own.") \
	X(0x10e, FLOW_SPEC, "a flow rule's specs are malformed or contradict each other", \
	  "num_of_specs, the size of a spec, or the order of the layers in ibv_create_flow() is " \
	  "wrong.", \
	  "Put each spec directly behind the one before, with its size member set to sizeof of its " \
	  "type, outer layers first.") \
	X(0x10f, ALLOCATOR, "the parent domain's allocator gave no usable memory", \
	  "The alloc() callback of ibv_alloc_parent_domain() returned NULL, or memory without the " \
	  "alignment that was asked for.", \
	  "Return memory with the given size and alignment, or IBV_ALLOCATOR_USE_DEFAULT.") \
	X(0x110, NO_DEVICE, "no device is listed", \
	  "No network interface is up and has an address, or VERBATIM_DEVICES leaves all of them out.", \
	  "Look at `ip address` and `verbatim devices`; bring an interface up (`ip link set lo up` as " \
	  "root), and unset VERBATIM_DEVICES.") \
	X(0x111, GPU_MEMORY, "the memory of a GPU cannot be registered", \
	  "ibv_reg_dmabuf_mr() was asked for a dma-buf that no process can map, or without a " \
	  "descriptor, by which programs find out, where NVIDIA's driver is. A software device copies " \
	  "with the processor, which does not reach that memory.", \
	  "Programs that ask first copy through host memory then. Others are told: NCCL by " \
	  "NCCL_NET_GDR_LEVEL=LOC and NCCL_DMABUF_ENABLE=0, UCX by UCX_IB_GPU_DIRECT_RDMA=no. " \
	  "NVSHMEM does not copy: NVSHMEM_REMOTE_TRANSPORT=none keeps it to one host.") \
	X(0x112, GID_INDEX, "the address names no GID of this port", \
	  "sgid_index is an empty place of the port's GID table, or is_global is 0. Index 3 " \
	  "(NCCL_IB_GID_INDEX=3, `-x 3`, `-g 3`) is a habit from adapters that list each address twice, " \
	  "for RoCE v1 and v2; here each address has one index.", \
	  "`verbatim devices` lists index and address of each GID. Take that of the address by which " \
	  "the peer is reached, most often 0 (NCCL_IB_GID_INDEX=0, `-x 0`, `-g 0`), and set is_global.") \
	X(0x113, PATH_MTU, "packets of this path MTU do not fit into the interface's MTU", \
	  "IBV_MTU_4096 or 2048 was asked for towards another host, and the interface has an MTU of " \
	  "1500, into which packets of 1024 bytes fit.", \
	  "Give active_mtu of ibv_query_port() as path_mtu (perftest: `-m 1024`, or no -m), or raise " \
	  "the MTU of the interfaces of both hosts: `ip link set dev NAME mtu 4200` fits 4096 bytes.") \
	/* 0x2xx: queues and states */ \
	X(0x201, QP_STATE, "the queue pair's state does not allow this", \
	  "Work was posted before ibv_modify_qp() reached RTR (receiving) or RTS (sending), or the " \
	  "queue pair has gone to the error state.", \
	  "Check the result of each ibv_modify_qp(): RESET -> INIT -> RTR -> RTS. Receives may be " \
	  "posted from INIT on, sends from RTS on.") \
	X(0x202, QP_TRANSITION, "no such state transition", \
	  "A step was left out (RESET to RTR, INIT to RTS), or the queue pair is connected a second " \
	  "time without a RESET.", \
	  "Go through INIT, RTR and RTS; from ERR or RTS go to RESET first.") \
	X(0x203, QP_ATTR_MISSING, "the transition needs an attribute that is not in the mask", \
	  "attr_mask of ibv_modify_qp() lacks a bit. RTR of RC needs AV, PATH_MTU, DEST_QPN, RQ_PSN, " \
	  "MAX_DEST_RD_ATOMIC and MIN_RNR_TIMER.", \
	  "Add the bits that the message names; the table for each type is in `man ibv_modify_qp`.") \
	X(0x204, QP_ATTR_EXTRA, "the transition does not take an attribute that is in the mask", \
	  "attr_mask of ibv_modify_qp() has a bit that belongs to another transition or another type " \
	  "(QKEY is for UD, ACCESS_FLAGS for RC and UC).", \
	  "Remove the bits that the message names; the table for each type is in `man ibv_modify_qp`.") \
	X(0x205, QUEUE_FULL, "the work queue is full", \
	  "More was posted than max_send_wr or max_recv_wr. Unsignalled sends keep their places until " \
	  "a later signalled one was polled.", \
	  "Signal every n-th send (IBV_SEND_SIGNALED), poll its completion, and count what is " \
	  "outstanding; or ask for a larger queue in ibv_create_qp().") \
	X(0x206, OPCODE, "the operation does not exist for this queue pair type", \
	  "An RDMA READ or an atomic was posted on UC or UD, an RDMA WRITE on UD, or one that " \
	  "send_ops_flags did not ask for.", \
	  "Use an RC queue pair for it, or name the operation in send_ops_flags of " \
	  "ibv_create_qp_ex().") \
	X(0x207, SGE_COUNT, "more scatter/gather elements than the queue was created with", \
	  "num_sge of the work request exceeds max_send_sge or max_recv_sge.", \
	  "Raise cap.max_send_sge or cap.max_recv_sge in ibv_create_qp(), or split the request.") \
	X(0x208, INLINE_LENGTH, "more inline data than the queue was created with", \
	  "A request with IBV_SEND_INLINE is longer than max_inline_data.", \
	  "Raise cap.max_inline_data in ibv_create_qp(), or leave IBV_SEND_INLINE out for long " \
	  "messages.") \
	X(0x209, FLUSHED, "flushed: the queue pair is in the error state", \
	  "The queue pair was moved to ERR, by the program or by an earlier error; whatever is still " \
	  "posted ends this way.", \
	  "Look at the first completion that is not flushed: that one has the cause. At the end of a " \
	  "connection it is ordinary.") \
	X(0x20a, CQ_OVERRUN, "the completion queue has no room", \
	  "More completions are outstanding than cqe of ibv_create_cq(): several queue pairs share " \
	  "the queue, or it is polled too seldom.", \
	  "Create it with the sum of max_send_wr and max_recv_wr of all queue pairs that use it, and " \
	  "poll until it is empty.") \
	X(0x20b, AH_PD, "the address handle belongs to another protection domain", \
	  "ibv_create_ah() and ibv_create_qp() were given different PDs.", \
	  "Make the address handle on the PD of the queue pair.") \
	X(0x20c, RD_ATOMIC_ZERO, "max_rd_atomic is 0, no READ or ATOMIC may start", \
	  "The transition to RTS was made with max_rd_atomic 0.", \
	  "Set max_rd_atomic (here, at RTS) and max_dest_rd_atomic (at the peer, at RTR) to at least " \
	  "1.") \
	X(0x20d, FLUSHED_LOCAL, "flushed: an earlier work request of this queue failed", \
	  "A request before this one ended with an error, and the queue stopped.", \
	  "Look at the first failed completion of this queue pair; this one is a consequence.") \
	X(0x20e, TAG_GONE, "no such tagged buffer: a message has taken it, or it was removed", \
	  "ibv_post_srq_ops() with DEL names a buffer that a message matched meanwhile.", \
	  "Poll the completion queue: the completion of the message is there or comes. Nothing else " \
	  "is to be done.") \
	/* 0x3xx: local memory */ \
	X(0x301, LKEY_UNKNOWN, "no such local key", \
	  "sge.lkey was not filled in, the region was deregistered while the work was outstanding, or " \
	  "the key of the other host was used.", \
	  "Take lkey from the struct ibv_mr of the buffer, and call ibv_dereg_mr() only after the " \
	  "completion of the work was polled.") \
	X(0x302, LKEY_PD, "the local key belongs to another protection domain", \
	  "The region was registered with another PD than that of the queue pair (for a shared " \
	  "receive queue: that of the SRQ).", \
	  "Use one PD for regions, queue pairs and shared receive queues that work together.") \
	X(0x303, LKEY_RANGE, "the address range exceeds the memory region", \
	  "sge.addr and sge.length reach outside of what was registered: a length in elements instead " \
	  "of bytes, an offset twice, or the 40 bytes before a datagram.", \
	  "Keep addr and addr+length inside addr and length of ibv_reg_mr(). Receives of UD need 40 " \
	  "bytes more than the message.") \
	X(0x304, LKEY_ACCESS, "the memory region lacks LOCAL_WRITE", \
	  "A receive, an RDMA READ or an atomic is to write into a region that was registered without " \
	  "IBV_ACCESS_LOCAL_WRITE.", \
	  "Add IBV_ACCESS_LOCAL_WRITE to the access flags of ibv_reg_mr().") \
	X(0x305, MESSAGE_LENGTH, "the message is longer than the port or the path allows", \
	  "A datagram is longer than the active MTU, or a message is longer than 2^31 bytes.", \
	  "Send datagrams of at most active_mtu of ibv_query_port() (1,024 bytes on an interface of " \
	  "MTU 1500), or use RC.") \
	X(0x306, ATOMIC_LENGTH, "an atomic needs scatter elements of exactly 8 bytes in sum", \
	  "The length in sg_list of a compare-and-swap or fetch-and-add is not 8.", \
	  "Give it one element of 8 bytes.") \
	X(0x307, MEMORY_GONE, "registered memory is no longer mapped", \
	  "The program unmapped or freed the buffer while it was registered (munmap(), free() of a " \
	  "large block, a library that replaced the mapping).", \
	  "Call ibv_dereg_mr() before the memory is freed.") \
	X(0x308, BIND_WINDOW, "the window to bind is unknown or of the other type", \
	  "ibv_bind_mw() is for type 1, IBV_WR_BIND_MW for type 2; or the window was deallocated.", \
	  "Use the call that fits the type of ibv_alloc_mw().") \
	X(0x309, BIND_BOUND, "the type 2 window is bound: it has to be invalidated first", \
	  "A window of type 2 was bound a second time.", \
	  "Post IBV_WR_LOCAL_INV, or let the peer send IBV_WR_SEND_WITH_INV, before the window is " \
	  "bound again.") \
	X(0x30a, BIND_REGION, "the region to bind to is unknown or not registered for windows", \
	  "The region was registered without IBV_ACCESS_MW_BIND, was deregistered, or is zero-based.", \
	  "Add IBV_ACCESS_MW_BIND to the access flags of ibv_reg_mr().") \
	X(0x30b, BIND_RANGE, "the range to bind is empty or exceeds the memory region", \
	  "bind_info.addr and length reach outside of the region.", \
	  "Keep them inside addr and length of the region; a length of 0 only unbinds a window of " \
	  "type 1.") \
	X(0x30c, BIND_ACCESS, "a window may not allow changes that its region does not allow", \
	  "The window asks for IBV_ACCESS_REMOTE_WRITE or REMOTE_ATOMIC, and the region lacks " \
	  "IBV_ACCESS_LOCAL_WRITE.", \
	  "Register the region with IBV_ACCESS_LOCAL_WRITE and IBV_ACCESS_MW_BIND.") \
	X(0x30d, BIND_PD, "window, region and queue pair are not of one protection domain", \
	  "They were made on different PDs.", \
	  "Make all three on one PD.") \
	X(0x30e, OWNER_GONE, "the process that owns the imported object has ended", \
	  "An object of ibv_import_device(), ibv_import_mr() or ibv_import_dm() outlived its owner, " \
	  "or the owner closed the context.", \
	  "Let the owner live, and keep its context open, as long as others use what they imported.") \
	/* 0x4xx: what the responder refuses */ \
	X(0x401, RKEY_UNKNOWN, "no such remote key", \
	  "The peer used a key that was never valid here, an lkey, or the key of a region that has " \
	  "been deregistered or re-registered since it was told.", \
	  "Send rkey (not lkey) to the peer in the right byte order, and deregister only after the " \
	  "peer has finished.") \
	X(0x402, RKEY_PD, "the remote key belongs to another protection domain", \
	  "The region and the queue pair that the request came in on were made on different PDs.", \
	  "Register the memory on the PD of that queue pair.") \
	X(0x403, RKEY_RANGE, "the remote range exceeds the memory region", \
	  "remote_addr and length reach outside of the region: an address of the wrong buffer, an " \
	  "offset twice, or a length that only the sender knows.", \
	  "Send the address and the length of the region to the peer (64 bit, in one byte order), and " \
	  "keep remote_addr+length inside.") \
	X(0x404, RKEY_ACCESS, "the memory region lacks the remote access flag", \
	  "ibv_reg_mr() was called without IBV_ACCESS_REMOTE_WRITE, REMOTE_READ or REMOTE_ATOMIC.", \
	  "Add the flag at the side that owns the memory. REMOTE_WRITE and REMOTE_ATOMIC also need " \
	  "LOCAL_WRITE.") \
	X(0x405, QP_ACCESS, "the queue pair lacks the remote access flag", \
	  "qp_access_flags of the transition to INIT lacks IBV_ACCESS_REMOTE_WRITE, REMOTE_READ or " \
	  "REMOTE_ATOMIC.", \
	  "Set qp_access_flags at the side that owns the memory, with IBV_QP_ACCESS_FLAGS in " \
	  "attr_mask.") \
	X(0x406, ATOMIC_ALIGN, "the remote address of an atomic is not a multiple of 8", \
	  "wr.atomic.remote_addr points into the middle of a word.", \
	  "Align the word to 8 bytes (alignas(8), posix_memalign()).") \
	X(0x407, RD_ATOMIC_EXCEEDED, "more READs and ATOMICs at once than max_dest_rd_atomic", \
	  "max_rd_atomic of the sender (at RTS) is larger than max_dest_rd_atomic here (at RTR).", \
	  "Give both sides the same number, at most max_qp_rd_atom of ibv_query_device().") \
	X(0x408, RECV_TOO_SMALL, "the receive buffers are shorter than the message", \
	  "The elements of the posted receive are together shorter than what the peer sends.", \
	  "Post receives for the longest message; both sides have to agree on it. Datagrams need 40 " \
	  "bytes more.") \
	X(0x409, OPCODE_SEQUENCE, "packets of a message arrived in an impossible order", \
	  "The sender is faulty, or packets of two senders are mixed: two queue pairs send to this " \
	  "one.", \
	  "Connect each queue pair to exactly one peer; look at the sender's software.") \
	X(0x40a, RETH_LENGTH, "the RETH's length is over 2^31 or does not match the data", \
	  "The sender made a wrong header.", \
	  "Look at the sender's software: verbatim and the kernel's driver do not send this.") \
	X(0x40b, NO_RECEIVE, "no receive was posted", \
	  "The peer sent before a receive was posted here, or sends faster than receives are posted " \
	  "again.", \
	  "Post receives before the peer learns that it may send, post them again at once, and have " \
	  "more of them than the peer may send.") \
	X(0x40c, PACKET_LENGTH, "a packet's length does not fit its opcode or the path MTU", \
	  "The two sides have different path_mtu.", \
	  "Give both sides the same path_mtu at RTR: the smaller active_mtu of the two ports.") \
	X(0x40d, INVALIDATE, "the key to invalidate is no bound type 2 window of this queue pair", \
	  "IBV_WR_SEND_WITH_INV or IBV_WR_LOCAL_INV names a region, a window of type 1, one of " \
	  "another queue pair, or one that is not bound.", \
	  "Invalidate the rkey of a window that was bound with IBV_WR_BIND_MW on this queue pair, " \
	  "once.") \
	X(0x40e, SRQ_UNKNOWN, "the request names no shared receive queue of the XRC domain", \
	  "remote_srqn of the sender is wrong, or the queue was destroyed.", \
	  "Tell the peer the number of ibv_get_srq_num(), and destroy the queue only after the peer " \
	  "has finished.") \
	X(0x40f, RKEY_QP, "the memory window is bound on another queue pair", \
	  "A window of type 2 serves the queue pair only on which it was bound.", \
	  "Bind the window on the queue pair that the peer sends to, or use a window of type 1.") \
	X(0x410, RKEY_OWNER_GONE, "the process that owns the imported region has ended", \
	  "A region of ibv_import_mr() outlived its owner.", \
	  "Let the owner live as long as peers use the region.") \
	X(0x411, FLUSH_TYPE, "a FLUSH names no placement type, or an unknown type or level", \
	  "ibv_wr_flush() was called with type 0, or with a level that does not exist.", \
	  "Use IBV_FLUSH_GLOBAL or IBV_FLUSH_PERSISTENT, and IBV_FLUSH_RANGE or IBV_FLUSH_MR.") \
	/* 0x5xx: what the requester learns from the peer or the link */ \
	X(0x501, NAK_SEQUENCE, "the peer missed a packet", \
	  "A packet was lost on the way.", \
	  "Nothing: it is sent again. If it happens often, look at the counters of the interface (`ip " \
	  "-s link`).") \
	X(0x502, NAK_INVALID, "the peer answered: invalid request", \
	  "The message is longer than the peer's receive, more READs are outstanding than the peer " \
	  "allows, or the queue pair types differ.", \
	  "Look at what the peer says (`verbatim explain` on its host): it names the receive, the " \
	  "length or the limit.") \
	X(0x503, NAK_ACCESS, "the peer answered: remote access error", \
	  "rkey, remote_addr, length, the access flags of the peer's region, or qp_access_flags of " \
	  "its queue pair do not fit.", \
	  "Look at what the peer says (`verbatim explain` on its host): it names the key and the " \
	  "range, or the flag that is missing.") \
	X(0x504, NAK_OPERATION, "the peer answered: remote operational error", \
	  "The peer's own receive is faulty: wrong lkey, or memory without IBV_ACCESS_LOCAL_WRITE.", \
	  "Look at the failed receive of the peer: its completion and `verbatim explain` on its host " \
	  "have the cause.") \
	X(0x505, RNR_EXCEEDED, "the peer had no receive posted, rnr_retry is used up", \
	  "The peer posts its receives too late or too few, and rnr_retry is small.", \
	  "Post receives before the connection is used, and set rnr_retry to 7 (for ever) and " \
	  "min_rnr_timer at the peer.") \
	X(0x506, RETRY_EXCEEDED, "the peer did not answer, retry_cnt is used up", \
	  "The peer's process has ended, or packets do not arrive: a firewall on UDP port 4791, a " \
	  "wrong address, a path MTU that is too large.", \
	  "Look whether the peer lives and is in RTR; let UDP port 4791 pass in both directions; try " \
	  "`ping -M do -s 1100 ADDRESS`; raise timeout and retry_cnt.") \
	X(0x507, PEER_DEAD, "the peer's process has ended", \
	  "The other process exited, was killed, or crashed while the connection was in use.", \
	  "Look at the peer's own output first (`verbatim explain PID` for its last failures).") \
	X(0x508, BAD_RESPONSE, "a response does not fit its request", \
	  "An acknowledgement or a READ response has a wrong length or opcode: another sender uses " \
	  "the same queue pair number, or the peer is faulty.", \
	  "Connect each queue pair to exactly one peer; look at the peer's software.") \
	X(0x509, PEER_NOT_READY, "the peer dropped the request: its queue pair is not ready", \
	  "The peer's queue pair is in RESET, INIT or ERR.", \
	  "Let the peer reach RTR before the first message; exchange one message over another channel " \
	  "after ibv_modify_qp() to RTR.") \
	X(0x50a, PEER_NOT_YET, "the peer's queue pair has not been brought to RTR yet", \
	  "The connection data was exchanged, but the peer had not called ibv_modify_qp() to RTR when " \
	  "the request came, nor within all retries.", \
	  "Synchronise: both sides go to RTR, exchange one byte, then to RTS. Or raise timeout and " \
	  "retry_cnt.") \
	X(0x50b, PEER_FAILED, "the peer's queue pair is in the error state after a fault", \
	  "An earlier request failed at the peer, or its program moved the queue pair to ERR.", \
	  "Look at the peer's first failed completion or asynchronous event.") \
	X(0x50c, PEER_NO_QP, "nobody has the queue pair number of the destination", \
	  "dest_qp_num is wrong (byte order, the own number instead of the peer's), or the peer " \
	  "destroyed the queue pair.", \
	  "Exchange qp_num in one byte order (htonl()), and keep the queue pair until both sides have " \
	  "finished.") \
	X(0x50d, PEER_TYPE, "the peer's queue pair is of another type", \
	  "One side made IBV_QPT_RC, the other UC or UD.", \
	  "Give both sides the same qp_type.") \
	X(0x50e, PEER_SOURCE, "the peer's queue pair is connected to another one", \
	  "Two queue pairs are connected to one of the peer's, or the peer has a wrong dest_qp_num.", \
	  "Connect each queue pair to exactly one peer, and check the exchange of qp_num on both " \
	  "sides.") \
	X(0x50f, PEER_PKEY, "the peer's queue pair has another P_Key", \
	  "pkey_index differs between the two sides.", \
	  "Use pkey_index 0 on both sides.") \
	X(0x510, PEER_PSN, "the peer expects another PSN: sq_psn here is not rq_psn there", \
	  "The packet sequence numbers were not exchanged, or crosswise: sq_psn of one side has to be " \
	  "rq_psn of the other.", \
	  "Send the own sq_psn to the peer and set it as rq_psn there; both have 24 bits.") \
	/* 0x6xx: drops */ \
	X(0x601, DROP_QPN, "no such queue pair", \
	  "A packet came for a queue pair that has been destroyed, or the sender has a wrong number.", \
	  "At the end of a connection this is ordinary. Otherwise check dest_qp_num or remote_qpn of " \
	  "the sender.") \
	X(0x602, DROP_STATE, "the queue pair is not ready to receive", \
	  "A packet came while the queue pair was in RESET, INIT or ERR, or from another host for " \
	  "datagrams while UDP port 4791 was not to be had.", \
	  "Bring the queue pair to RTR before the peer sends.") \
	X(0x603, DROP_TYPE, "the packet is for another queue pair type", \
	  "The sender's queue pair has another type than this one.", \
	  "Give both sides the same qp_type.") \
	X(0x604, DROP_QKEY, "wrong Q_Key", \
	  "wr.ud.remote_qkey of the sender is not the qkey of this queue pair.", \
	  "Use the same qkey in ibv_modify_qp() here and in wr.ud.remote_qkey there.") \
	X(0x605, DROP_PKEY, "wrong P_Key", \
	  "The two sides use different partitions.", \
	  "Use pkey_index 0 on both sides.") \
	X(0x606, DROP_SOURCE, "the sender is not the queue pair's peer", \
	  "Another queue pair sends to this one, perhaps of another host while the peer is of this one, " \
	  "or dest_qp_num here is not the number of the sender.", \
	  "Connect each queue pair to exactly one peer, and check the exchange of qp_num.") \
	X(0x607, DROP_NO_RECEIVE, "no receive was posted (unreliable service)", \
	  "Datagrams come faster than receives are posted; a datagram is then lost, and nobody is " \
	  "told.", \
	  "Post more receives, post them before the peer sends, and count what was sent and what " \
	  "arrived.") \
	X(0x608, DROP_TOO_LONG, "the message is longer than the receive (unreliable service)", \
	  "The receive has no room for the message and the 40 bytes in front of a datagram.", \
	  "Post receives of the length of the message, plus 40 bytes for UD.") \
	X(0x609, DROP_STALE, "an old or impossible PSN", \
	  "A packet was duplicated on the way, or comes from an earlier connection of the same " \
	  "numbers.", \
	  "Nothing, unless messages are missing: then compare rq_psn here with sq_psn there.") \
	X(0x60a, DROP_MALFORMED, "the packet is malformed", \
	  "Something that is not RoCEv2 is sent to UDP port 4791, or the sender is faulty.", \
	  "Find the sender with `tcpdump -n udp port 4791`.") \
	X(0x60b, DROP_SEQUENCE, "a packet of an unreliable message is missing", \
	  "A packet of a message on UC was lost on the way.", \
	  "Use RC where messages must not be lost.") \
	X(0x60c, DROP_UNREACHABLE, "no link reaches the destination", \
	  "A datagram has an address that is not routed from here, or the socket refused it; the " \
	  "message has the errno.", \
	  "Try `ip route get ADDRESS`, and check dgid of the address handle.") \
	X(0x60d, DROP_ACCESS, "an unreliable RDMA WRITE failed its access check", \
	  "rkey, remote_addr, length or the access flags do not fit; on UC the sender is not told.", \
	  "Check rkey and range at the sender, IBV_ACCESS_REMOTE_WRITE of region and queue pair here.") \
	X(0x60e, DROP_OPCODE, "the packet's opcode is unknown", \
	  "The sender uses an operation that does not exist here.", \
	  "Look at the sender's software.") \
	X(0x60f, DROP_VERSION, "the packet has an unknown transport version", \
	  "Something that is not RoCEv2 is sent to UDP port 4791.", \
	  "Find the sender with `tcpdump -n udp port 4791`.") \
	X(0x610, DROP_ICRC, "the packet's ICRC is wrong", \
	  "The packet was damaged, or a device on the way changed its addresses (NAT) without a new " \
	  "check sum.", \
	  "Let RoCEv2 pass without address translation; look for faulty hardware. " \
	  "VERBATIM_FAULT=corrupt=... does it on purpose.") \
	X(0x611, DROP_CONGESTION, "a congestion notification, to which nothing here listens", \
	  "A peer that is an adapter asks for a lower rate (CNP).", \
	  "Nothing. A rate can be set with ibv_modify_qp_rate_limit().") \
	X(0x612, DROP_SEND_BUFFER, "the send buffer of the UDP socket is full", \
	  "More is sent than the interface takes.", \
	  "Nothing: reliable queue pairs send again. Raise net.core.wmem_max if it happens often.") \
	X(0x613, DROP_INBOX, "the engine that a packet is for does not keep up", \
	  "One completion queue of the process is polled seldom while much is sent to it.", \
	  "Poll it more often, or give busy queue pairs a completion queue of their own.") \
	X(0x614, DROP_STRAY, "the packet is for a process of this host that cannot be reached", \
	  "The process that owns the queue pair number has ended or belongs to another user.", \
	  "Run both processes as one user, or wait until the peer notices that the process has ended.") \
	X(0x615, DROP_NOT_YET, "the queue pair has not been brought to RTR yet", \
	  "The peer sends before ibv_modify_qp() to RTR was called here.", \
	  "Synchronise both sides after RTR, before the first message.") \
	X(0x616, DROP_FAILED, "the queue pair is in the error state after a fault", \
	  "The peer goes on sending to a queue pair that has failed.", \
	  "Look at the first failure of this queue pair.") \
	X(0x617, DROP_PSN, "the PSN cannot be the sender's: rq_psn here is not sq_psn there", \
	  "The packet sequence numbers were not exchanged, or crosswise.", \
	  "Set rq_psn here to the sq_psn of the peer.") \
	X(0x618, DROP_SOCKET_FULL, "the packet socket's buffer had no room for frames", \
	  "Frames of a raw packet queue pair come faster than they are polled.", \
	  "Poll more often and post more receives; raise net.core.rmem_max.") \
	X(0x619, DROP_FORGED, "the source is a number that is not its sender's", \
	  "A process of this host sent with a queue pair number of another one.", \
	  "Look at that process: no correct program does this.") \
	X(0x61a, DROP_LENT, "the payload of a message cannot be fetched from the sender's memory", \
	  "A long message between two processes of a host was to be copied once, and the memory of " \
	  "its sender cannot be reached, or has changed meanwhile.", \
	  "Nothing: the sender sends it through the ring, with one copy more.") \
	/* 0x7xx: the host: names, pages, rings */ \
	X(0x701, PEER_VERSION, "the peer speaks another version of the shared-memory protocol", \
	  "Two processes of this host use different builds of verbatim.", \
	  "Start both with the same libibverbs.so.1 (`verbatim run`), and end processes that were " \
	  "started before an update.") \
	X(0x702, PEER_USER, "the peer belongs to another user", \
	  "Two processes of different users on one host want to talk through shared memory.", \
	  "Run both as one user, or let the users agree by VERBATIM_DOMAIN (verbatim(7)).") \
	X(0x703, PEER_CORRUPT, "the peer's shared memory holds impossible values", \
	  "The peer's process wrote over memory that is not its own, or is hostile.", \
	  "Look for a wild write in the peer (valgrind, an address sanitizer).") \
	X(0x704, NO_DIRECT_ACCESS, "direct access to the peer's memory is not possible", \
	  "The kernel does not let this process open the peer's /proc/PID/mem: the peer has other " \
	  "rights, is not dumpable, or is in another container; or Landlock, Yama, another " \
	  "security module or a seccomp filter forbids it.", \
	  "Nothing has to be done: everything works with one copy more. `verbatim devices` says what " \
	  "forbids it.") \
	X(0x705, DESCRIPTORS_GONE, "the program closed descriptors of the device", \
	  "The program closes all descriptors from 3 up, as daemons do, after the device was opened.", \
	  "Close descriptors before the first verbs call, or only those that the program opened.") \
	X(0x706, NAMES_TAKEN, "other processes hold the names of queue pair numbers", \
	  "Very many processes of this network namespace use verbs, or one holds names on purpose.", \
	  "Look at /proc/net/unix for names that begin with @verbatim, and end the processes that " \
	  "hold them.") \
	X(0x707, STRANGERS, "other users' processes ask for more than they are given", \
	  "Processes of another user call this one very often, or want more channels than one user " \
	  "gets.", \
	  "If they are meant to talk to each other, run them as one user.") \
	X(0x708, NO_ANSWER, "a process began to introduce itself and did not go on", \
	  "The peer is stopped (SIGSTOP, a debugger) or so busy that it does not answer.", \
	  "Let the peer go on.") \
	X(0x709, PEER_SHORT, "the peer has no descriptor left for a connection", \
	  "The peer is at its limit of open descriptors (RLIMIT_NOFILE).", \
	  "Raise it for the peer with `ulimit -n`.") \
	X(0x70a, PEER_STILL, "a process that stands still is not waited for any longer", \
	  "The peer is stopped (SIGSTOP, a debugger, a frozen cgroup) in the middle of an operation " \
	  "on shared memory.", \
	  "Let the peer go on, or end it.") \
	X(0x70b, NO_TRUST, "the peer may not have this process's memory", \
	  "The kernel does not let the peer open this process's /proc/PID/mem: it runs with other " \
	  "rights, as another user, in another container or confined. One-sided operations are " \
	  "then executed by the owner of the memory.", \
	  "Nothing has to be done. To allow it between containers of one user set VERBATIM_TRUST=uid " \
	  "for both.") \
	X(0x70c, DESCRIPTORS_SHORT, "no descriptor is left here for a connection (RLIMIT_NOFILE)", \
	  "This process is at its limit of open descriptors.", \
	  "Raise it with `ulimit -n`, or close descriptors that are not used.") \
	/* 0x8xx: the connection manager */ \
	X(0x801, CM_MALFORMED, "a message of the connection manager is malformed", \
	  "A MAD has not 256 bytes, a length in it exceeds its field, or an identifier that must be " \
	  "there is 0.", \
	  "Look at what sends to UDP port 4791 here: it is faulty, or it means harm. The message was " \
	  "dropped.") \
	X(0x802, CM_OTHER, "a management datagram that nobody here listens for", \
	  "It is of another class or version than the connection manager's, or asks for an alternate " \
	  "path, which RoCE does not have.", \
	  "Nothing has to be done: every receiver of RoCE drops it.") \
	X(0x803, CM_UNKNOWN, "a message is for a connection that is not here", \
	  "The connection is over and forgotten, the process that had it has ended, or the number is " \
	  "invented.", \
	  "Nothing has to be done after a restart. Peers that disconnect are answered all the same.") \
	X(0x804, CM_STATE, "a message that the connection's state has no use for", \
	  "It was repeated, or it was overtaken by another message; networks do that.", \
	  "Nothing has to be done.") \
	X(0x805, CM_SOURCE, "a message comes from another address than the connection's peer", \
	  "Someone guesses identifiers of connections, or a peer with several addresses answers by the " \
	  "wrong one.", \
	  "If it is a peer of yours, look at its routes (`ip route get`): answers must leave by the " \
	  "address that the request went to.") \
	X(0x806, CM_BACKLOG, "more connection requests than the backlog holds", \
	  "The program reads its events (rdma_get_cm_event()) slower than requests come, or a peer " \
	  "floods it.", \
	  "Raise the backlog of rdma_listen(), and read events in a thread of their own. The peer tries " \
	  "again by itself.") \
	X(0x807, CM_NO_LISTENER, "a connection request for a port on which nobody listens", \
	  "The server has not called rdma_listen() yet, listens on another port or in another port " \
	  "space, or has ended. The peer gets REJECTED with status 8.", \
	  "Compare the port and the port space of both programs, and start the server first.") \
	X(0x808, CM_NO_MATCH, "a connection request that the listener of its port does not take", \
	  "The listener is bound to another address or IP version, or its queue pairs have another " \
	  "type. The peer gets REJECTED with status 28.", \
	  "Bind the server to the address that the client names, or to 0.0.0.0 or ::, and use one type " \
	  "of queue pair.") \
	X(0x809, CM_STALE, "a connection request for a queue pair that has a connection already", \
	  "The peer has begun anew with numbers of a connection that is not over here: it was restarted " \
	  "within seconds. It gets REJECTED with status 10.", \
	  "Let the peer connect again after two seconds.") \
	X(0x80a, CM_GID, "a connection request names GIDs that it did not come by", \
	  "The GIDs in the request differ from the addresses of its packet. The peer gets REJECTED with " \
	  "status 12.", \
	  "Look for address translation between the hosts: RoCE does not pass through it.") \
	X(0x80b, CM_NO_IDS, "all identifiers of connections are in use", \
	  "Very many connections are open, or were closed within the last seconds.", \
	  "Destroy ids that are not used (rdma_destroy_id()), or spread the connections over several " \
	  "processes.") \
	X(0x80c, CM_TIMEOUT, "the peer's connection manager does not answer", \
	  "The host is down, a firewall drops UDP port 4791, or the peer's process stands still.", \
	  "Try `ping` to the address, and look for firewall rules on UDP port 4791.") \
	X(0x80d, CM_NO_MEMORY, "no memory for a connection request", \
	  "The process is at its memory limit, or the limit of requests that wait for an answer is " \
	  "reached.", \
	  "Look at `ulimit -v` and the memory limit of the container. The peer tries again by itself.") \
	X(0x80e, CM_HALF_OPEN, "too many connection requests whose senders do not go on", \
	  "A host floods this one with requests, perhaps in the name of other addresses; or very many " \
	  "hosts connect at once for the first time.", \
	  "Nothing has to be done: senders that exist are asked, and try again by themselves. Look for " \
	  "a host that floods this one.") \
	/* 0x82x: the carrier of its messages, and ports */ \
	X(0x821, MAD_NOBODY, "no process of this user takes connections", \
	  "A host wants to connect, and no program that listens with rdma_listen() runs, or it runs " \
	  "as another user than the one that has UDP port 4791.", \
	  "Start the program that listens, as the user whose processes have the port.") \
	X(0x822, MAD_FULL, "more datagrams of connections than can be kept", \
	  "A peer begins very many connections at once, or the process that they are for stands " \
	  "still.", \
	  "Nothing has to be done: the peer sends them again. Look for a host that floods this one.") \
	X(0x823, PORT_BOUND, "the port of the port space is bound by another connection id", \
	  "Another id, perhaps of another process of this user, has bound or listens on the port.", \
	  "Choose another port, end the other program, or set RDMA_OPTION_ID_REUSEADDR on both.") \
	/* 0x9xx: calls of the communication manager (librdmacm) */ \
	X(0x901, CMA_STATE, "the id is not in the state that the call needs", \
	  "The calls were made in another order than bind, resolve address, resolve route, connect; " \
	  "or before the event of the call before.", \
	  "Wait for the event of each call, and compare the order with `man rdma_cm`.") \
	X(0x902, CMA_ADDRESS, "the address cannot be used for this", \
	  "It is no address of this host, of another family than the id's, or a link-local IPv6 " \
	  "address without its interface (sin6_scope_id).", \
	  "Compare it with `ip address`; write a link-local address as fe80::1%eth0.") \
	X(0x903, CMA_NO_DEVICE, "the address belongs to an interface without a device", \
	  "The route leads over an interface that is down, excluded by VERBATIM_DEVICES, or has no " \
	  "device, as lo may have none.", \
	  "Look at `verbatim devices` and `ip route get ADDRESS`, and use an address of a device.") \
	X(0x904, CMA_PORT, "the port cannot be had", \
	  "Another id is bound to it in this port space (EADDRINUSE; EADDRNOTAVAIL where one of the " \
	  "two is bound to all addresses), or it is below 1024 (EACCES).", \
	  "Choose another port, end the other program, or set RDMA_OPTION_ID_REUSEADDR on both ids.") \
	X(0x905, CMA_ROUTE, "there is no route to the address", \
	  "The routing table has no entry for the destination.", \
	  "Try `ip route get ADDRESS`, and check the address and the interface's network mask.") \
	X(0x906, CMA_OPTION, "the option is unknown or does not take this value", \
	  "The level, the name or the length of rdma_set_option() is wrong, or the option does not " \
	  "go with the type of the id.", \
	  "Compare them with `man rdma_set_option`.")
/* clang-format on */

#endif
