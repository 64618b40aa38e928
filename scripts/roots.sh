# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# For scripts that try something in a Debian root of their own: making one with debootstrap, and running commands in it.
# Needs root, debootstrap and a Debian package source: BARE_MIRROR, or the one that apt uses here.

fail() {
	echo "${0##*/}: $*" >&2
	exit 2
}

mirror_of_apt() {
	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' "Created-By: Packages" |
		awk '$1 == "Debian" && $2 == "Debian" {print $3; exit}'
}

# Ends the script where roots cannot be made; sets `mirror`.
roots_possible() {
	local program
	[ "$(id -u)" = 0 ] || fail "only root can make another root"
	for program in debootstrap git unshare pivot_root; do
		command -v "$program" >/dev/null || fail "$program is not installed"
	done
	mirror=${BARE_MIRROR:-$(mirror_of_apt)}
	[ -n "$mirror" ] || fail "no Debian package source known: set BARE_MIRROR"
}

# bootstrap RELEASE ROOT PACKAGE,...: a minimal Debian with these packages.
bootstrap() {
	debootstrap --variant=minbase --include="$3" "$1" "$2" "$mirror" >"$2.log" 2>&1 ||
		{ tail -n 20 "$2.log" >&2; fail "debootstrap $1"; }
	# An installer and each container engine write it.
	printf '127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n' >"$2/etc/hosts"
}

# enter [--alone] ROOT COMMAND...: runs a command with the new root as the root of a mount namespace of its own (in a chroot(2) the
# kernel refuses user namespaces), and in a pid namespace, so that nothing outlives it. --alone: also in a network namespace that has
# only the loopback interface.
enter() {
	local network=()
	[ "$1" != --alone ] || { network=(--net) && shift; }
	# shellcheck disable=SC2016 # expanded by the inner shell
	unshare --mount "${network[@]}" --propagation private --pid --fork --kill-child -- bash -euc '
		root=$1
		[ "$2" = 0 ] || ip link set lo up
		shift 2
		mount --bind "$root" "$root"
		mount -t proc proc "$root/proc"
		mount --rbind /sys "$root/sys"
		mount -t tmpfs -o mode=755 dev "$root/dev"
		for node in null zero full random urandom tty; do
			touch "$root/dev/$node"
			mount --bind "/dev/$node" "$root/dev/$node"
		done
		mkdir "$root/dev/shm" "$root/dev/pts"
		mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
		mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
		ln -s pts/ptmx "$root/dev/ptmx"
		ln -s /proc/self/fd "$root/dev/fd"
		for number in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${number%:*}" "$root/dev/${number#*:}"; done
		mount -t tmpfs -o mode=1777 tmp "$root/tmp"
		mount -t tmpfs -o mode=755 run "$root/run"
		cd "$root"
		mkdir -p .outside
		pivot_root . .outside
		umount -l /.outside
		exec "$@"
	' enter "$1" "${#network[@]}" "${@:2}"
}
