/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What programs that Debian does not ship look up in /sys and /dev beside the verbs calls, made by
 * the same library functions in the same order: NCCL, NVSHMEM, Mooncake, 3FS, UCCL, gloo, NIXL,
 * sideway and Open MPI's choice of devices. For each, what it would conclude about the first device
 * is compared with what the verbs calls say. Prints one TAP line a program.
 */
#include <infiniband/verbs.h>

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <string>

namespace fs = std::filesystem;

namespace {

struct Device {
	ibv_device *device;
	ibv_context *context;
	ibv_device_attr attr;
	ibv_port_attr port;
	std::string name, path;
};

int tests, failed;

void check(bool good, const std::string &what)
{
	if (!good)
		throw std::runtime_error(what);
}

void program(const char *name, const std::function<void()> &look)
{
	tests++;
	try {
		look();
		printf("ok %d - %s\n", tests, name);
	} catch (const std::exception &fault) {
		failed++;
		printf("not ok %d - %s: %s\n", tests, name, fault.what());
	}
}

/* Without the newline at the end; an exception where the file cannot be read. */
std::string read_by_open(const std::string &path)
{
	char text[256];
	int fd = open(path.c_str(), O_RDONLY);

	check(fd >= 0, "open " + path + ": " + strerror(errno));
	ssize_t n = read(fd, text, sizeof(text));

	close(fd);
	check(n > 0, "read " + path);
	return std::string(text, text[n - 1] == '\n' ? static_cast<size_t>(n - 1) : static_cast<size_t>(n));
}

std::string read_by_stream(const std::string &path)
{
	std::ifstream file(path);
	std::string line;

	check(file.is_open() && std::getline(file, line), "ifstream " + path);
	return line;
}

std::string resolved(const std::string &path)
{
	char *real = realpath(path.c_str(), nullptr);

	check(real, "realpath " + path + ": " + strerror(errno));
	std::string text(real);

	free(real);
	return text;
}

bool is_address_of_bus(const std::string &text)
{
	unsigned int domain, bus, slot, function;
	int end = 0;

	return sscanf(text.c_str(), "%x:%x:%x.%x%n", &domain, &bus, &slot, &function, &end) == 4 &&
	       end == static_cast<int>(text.size());
}

/* The index that a program takes which wants RoCE v2 over IPv4. */
int gid_wanted(const Device &d, const std::function<std::string(int)> &type_of)
{
	static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	static const unsigned char none[16] = {};

	for (int i = 0; i < d.port.gid_tbl_len; i++) {
		ibv_gid gid;

		check(ibv_query_gid(d.context, 1, i, &gid) == 0, "ibv_query_gid");
		if (!memcmp(gid.raw, none, sizeof(none)) || memcmp(gid.raw, mapped, sizeof(mapped)))
			continue;
		if (type_of(i) == "RoCE v2")
			return i;
	}
	return -1;
}

int gid_by_verbs(const Device &d)
{
	ibv_gid_entry entry;

	for (int i = 0; i < d.port.gid_tbl_len; i++) {
		if (ibv_query_gid_ex(d.context, 1, static_cast<uint32_t>(i), &entry, 0) == 0 &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V2 && entry.gid.raw[10] == 0xff)
			return i;
	}
	return -1;
}

void nccl(const Device &d)
{
	std::string pci = resolved(d.path + "/device");

	check(is_address_of_bus(basename(pci.data())), "not a PCI address: " + pci);
	int index = gid_wanted(d, [&](int i) {
		return read_by_open("/sys/class/infiniband/" + d.name + "/ports/1/gid_attrs/types/" + std::to_string(i));
	});
	check(index >= 0 && index == gid_by_verbs(d), "GID " + std::to_string(index));
}

void nvshmem(const Device &d)
{
	check(!resolved("/sys/class/infiniband/" + d.name + "/device").empty(), "no PCI path");
	check(read_by_open(d.path + "/ports/1/gid_attrs/types/" + std::to_string(gid_by_verbs(d))) == "RoCE v2", "type");
}

void mooncake(const Device &d)
{
	std::string file = std::string("/dev/infiniband/") + d.device->dev_name;
	struct stat st;

	check(stat(file.c_str(), &st) == 0 && S_ISCHR(st.st_mode), file + " is no character device");
	check(access(file.c_str(), R_OK | W_OK) == 0, file + " is not accessible");
	std::string bus = resolved(std::string(d.device->ibdev_path) + "/../..");

	check(is_address_of_bus(bus.substr(bus.rfind('/') + 1)), "not below a PCI address: " + bus);
	check(std::stoi(read_by_stream(bus + "/numa_node")) >= -1, "numa_node");
	std::string netdev = read_by_stream(d.path + "/ports/1/gid_attrs/ndevs/" + std::to_string(gid_by_verbs(d)));

	check("vb_" + netdev == d.name, "netdev " + netdev);
}

void three_fs(const Device &d)
{
	bool found = false;

	for (const auto &entry : fs::directory_iterator("/sys/class/infiniband"))
		found |= entry.path().filename() == d.name;
	check(found, "the class does not list the device");
	check(fs::is_symlink(d.path + "/device") && fs::is_directory(d.path + "/device"), "device is no link to a directory");
	found = false;
	for (const auto &entry : fs::directory_iterator(d.path + "/device/net"))
		found |= "vb_" + entry.path().filename().string() == d.name;
	check(found, "no network interface below the device");
}

void uccl(const Device &d)
{
	check(read_by_stream(d.path + "/ports/1/state").find("ACTIVE") != std::string::npos, "state");
	check(is_address_of_bus(fs::canonical(std::string(d.device->ibdev_path) + "/device").filename()), "canonical");
	std::string command = "ls -l " + d.path + "/device/net/ | tail -n 1 | awk '{print $NF}'";
	char line[64] = "";
	FILE *shell = popen(command.c_str(), "r");

	check(shell && fgets(line, sizeof(line), shell), command);
	pclose(shell);
	line[strcspn(line, "\n")] = '\0';
	check("vb_" + std::string(line) == d.name, std::string("interface ") + line);
}

void gloo(const Device &d)
{
	const std::string buses = "/sys/bus/pci/devices/";
	DIR *dir = opendir(buses.c_str());
	bool found = false;

	check(dir, buses);
	while (dirent *entry = readdir(dir)) {
		if (entry->d_name[0] == '.')
			continue;
		read_by_stream(buses + entry->d_name + "/class"); /* throws for any that has none */
		DIR *adapters = opendir((buses + entry->d_name + "/infiniband").c_str());

		while (dirent *adapter = adapters ? readdir(adapters) : nullptr)
			found |= adapter->d_name == d.name;
		if (adapters)
			closedir(adapters);
	}
	closedir(dir);
	check(found, "no PCI device has the adapter");
}

void nixl(const Device &d)
{
	char vendor[16];

	snprintf(vendor, sizeof(vendor), "0x%04x", d.attr.vendor_id);
	check(read_by_stream(d.path + "/device/vendor") == vendor, "vendor");
	check(read_by_stream(d.path + "/device/class").substr(0, 4) == "0x02", "class");
}

void open_mpi(const Device &d)
{
	char link[PATH_MAX];
	ssize_t n = readlink((d.path + "/device/driver").c_str(), link, sizeof(link) - 1);

	check(n > 0, "no driver");
	link[n] = '\0';
	check(fnmatch("mlx*", basename(link), 0) != 0, "it would be taken for another maker's");
}

void rdma_core(const Device &d)
{
	char guid[32];
	uint64_t g = be64toh(ibv_get_device_guid(d.device));

	snprintf(guid, sizeof(guid), "%04x:%04x:%04x:%04x", static_cast<unsigned>(g >> 48), static_cast<unsigned>(g >> 32 & 0xffff),
		 static_cast<unsigned>(g >> 16 & 0xffff), static_cast<unsigned>(g & 0xffff));
	check(read_by_open(d.path + "/node_guid") == guid, "node_guid");
	check(read_by_open(d.path + "/fw_ver") == d.attr.fw_ver, "fw_ver");
	check(read_by_open(d.path + "/ports/1/link_layer") == "Ethernet", "link_layer");
	check(read_by_open(d.path + "/ports/1/state") == (d.port.state == IBV_PORT_ACTIVE ? "4: ACTIVE" : "1: DOWN"), "state");
}

} // namespace

int main(int argc, char **argv)
{
	int number = 0;
	ibv_device **list = ibv_get_device_list(&number);
	Device d = {};

	for (int i = 0; list && i < number; i++) {
		if (argc < 2 || !strcmp(argv[1], ibv_get_device_name(list[i])))
			d.device = list[i];
	}
	if (!d.device || !(d.context = ibv_open_device(d.device)) || ibv_query_device(d.context, &d.attr) ||
	    ibv_query_port(d.context, 1, &d.port)) {
		fprintf(stderr, "no device\n");
		return 1;
	}
	d.name = ibv_get_device_name(d.device);
	d.path = "/sys/class/infiniband/" + d.name;
	program("rdma-core's tools: what the files say is what the calls say", [&] { rdma_core(d); });
	program("NCCL: PCI path and GID index", [&] { nccl(d); });
	program("NVSHMEM: PCI path and GID type", [&] { nvshmem(d); });
	program("Mooncake: device file, PCI folder, NUMA node, interface", [&] { mooncake(d); });
	program("3FS: class folder and interface", [&] { three_fs(d); });
	program("UCCL: state, PCI address, interface by a shell", [&] { uccl(d); });
	program("gloo: adapters by PCI device", [&] { gloo(d); });
	program("NIXL: vendor and class", [&] { nixl(d); });
	program("Open MPI: the driver's name", [&] { open_mpi(d); });
	printf("1..%d\n", tests);
	ibv_close_device(d.context);
	ibv_free_device_list(list);
	return failed != 0;
}
