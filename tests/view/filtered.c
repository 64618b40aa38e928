/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs a program under a seccomp filter that forbids what Docker's default profile forbids to a
 * container without added capabilities, as far as this project could care: namespaces, mounts, the
 * memory and descriptors of other processes, keys, and kernel facilities of doubtful safety.
 *
 * usage: filtered PROGRAM [ARGUMENT...]
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the filter knows system call numbers of x86-64 and aarch64 only"
#endif

static const unsigned int forbidden[] = {
	SYS_unshare,
	SYS_setns,
	SYS_mount,
	SYS_umount2,
	SYS_pivot_root,
	SYS_open_tree,
	SYS_move_mount,
	SYS_fsopen,
	SYS_fsconfig,
	SYS_fsmount,
	SYS_fspick,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_ptrace,
	SYS_kcmp,
	SYS_pidfd_getfd,
	SYS_keyctl,
	SYS_add_key,
	SYS_request_key,
	SYS_bpf,
	SYS_userfaultfd,
	SYS_perf_event_open,
	SYS_io_uring_setup,
	SYS_io_uring_enter,
	SYS_io_uring_register,
	SYS_open_by_handle_at,
	SYS_name_to_handle_at,
	SYS_quotactl,
	SYS_acct,
	SYS_swapon,
	SYS_swapoff,
	SYS_reboot,
	SYS_init_module,
	SYS_finit_module,
	SYS_delete_module,
	SYS_kexec_load,
	SYS_mbind,
	SYS_move_pages,
	SYS_set_mempolicy,
	SYS_get_mempolicy,
	SYS_lookup_dcookie,
	SYS_vhangup,
	SYS_syslog,
	SYS_settimeofday,
};
enum { FORBIDDEN = sizeof(forbidden) / sizeof(forbidden[0]), ROOM = 2 * FORBIDDEN + 16 };

#define LOAD(field)          \
	(struct sock_filter) \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(value)    (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, value)
/* Does the next instruction if the value is this, otherwise leaves it out. */
#define IF_EQUAL(value)  (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1)
#define IF_ANY_BIT(bits) (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1)
/* Goes on if the value is this, otherwise leaves `count` instructions out. */
#define UNLESS_EQUAL(value, count) \
	(struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count)

static unsigned short build(struct sock_filter *filter)
{
	unsigned short n = 0;

	filter[n++] = LOAD(arch);
	filter[n++] = UNLESS_EQUAL(ARCHITECTURE, 1);
	filter[n++] = LOAD(nr);
	/* Another architecture's call has the architecture in place of the number: it is allowed. */
	for (unsigned int i = 0; i < FORBIDDEN; i++) {
		filter[n++] = IF_EQUAL(forbidden[i]);
		filter[n++] = RETURN(SECCOMP_RET_ERRNO | EPERM);
	}
	/* clone3(2) has its flags in memory, where a filter cannot look; libraries then use clone(2). */
	filter[n++] = IF_EQUAL(SYS_clone3);
	filter[n++] = RETURN(SECCOMP_RET_ERRNO | ENOSYS);
	filter[n++] = UNLESS_EQUAL(SYS_clone, 3);
	filter[n++] = LOAD(args[0]);
	filter[n++] = IF_ANY_BIT(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
				 CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET);
	filter[n++] = RETURN(SECCOMP_RET_ERRNO | EPERM);
	filter[n++] = RETURN(SECCOMP_RET_ALLOW);
	return n;
}

int main(int argc, char **argv)
{
	struct sock_filter filter[ROOM];
	struct sock_fprog program = {.filter = filter};

	if (argc < 2)
		return 2;
	program.len = build(filter);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		fprintf(stderr, "filtered: no seccomp filter here: %s\n", strerror(errno));
		return 77;
	}
	execvp(argv[1], argv + 1);
	fprintf(stderr, "filtered: %s: %s\n", argv[1], strerror(errno));
	return 127;
}
