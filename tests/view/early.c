/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A library that reads a file, before any other constructor has run if it is preloaded. EARLY_FILE
 * names the file; what was read is written to standard output, marked.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void early_read(const char *mark);

__attribute__((visibility("default"))) void early_read(const char *mark)
{
	char text[64] = "nothing\n";
	const char *file = getenv("EARLY_FILE");
	int fd = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t length = 0;

	if (fd >= 0) {
		length = read(fd, text, sizeof(text));
		close(fd);
	}
	if (length <= 0)
		length = (ssize_t)strlen("nothing\n");
	if (write(STDOUT_FILENO, mark, strlen(mark)) < 0 ||
	    write(STDOUT_FILENO, text, (size_t)length) < 0)
		_exit(1);
}

__attribute__((constructor(101))) static void early(void)
{
	if (getenv("EARLY_FILE"))
		early_read("constructor: ");
}
