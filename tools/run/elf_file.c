/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program file in the ELF format. Nothing in it is trusted: each offset and size is checked by
 * reading with pread(2) into room of known size.
 */
#include "run/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#elif defined(__powerpc64__)
#define OWN_MACHINE EM_PPC64
#elif defined(__s390x__)
#define OWN_MACHINE EM_S390
#elif defined(__riscv)
#define OWN_MACHINE EM_RISCV
#else
#define OWN_MACHINE EM_NONE
#endif
#define OWN_CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)

/* More than programs have; a file that claims more is not searched. */
enum { MAX_HEADERS = 4096, MAX_NAMES = 256 << 20, MAX_SAME_NAME = 8, CHUNK = 64 << 10 };

static const char wanted[] = "ibv_open_device";

static bool read_at(int fd, void *to, size_t size, uint64_t offset)
{
	return offset <= INT64_MAX && pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

static void read_loader(struct elf_file *elf, int fd, const ElfW(Phdr) * part)
{
	if (part->p_filesz < 2 || part->p_filesz >= sizeof(elf->loader) ||
	    !read_at(fd, elf->loader, part->p_filesz, part->p_offset))
		elf->loader[0] = '\0';
	else
		elf->loader[part->p_filesz] = '\0';
}

/* Go marks its programs by a note of the name "Go" (cmd/link), which stripping leaves in place. */
static bool has_go_note(int fd, const ElfW(Phdr) * part)
{
	char notes[1024];
	size_t size = part->p_filesz < sizeof(notes) ? part->p_filesz : sizeof(notes);
	size_t at = 0;

	if (!read_at(fd, notes, size, part->p_offset))
		return false;
	while (at + sizeof(ElfW(Nhdr)) <= size) {
		ElfW(Nhdr) note;
		size_t name = at + sizeof(note);

		memcpy(&note, notes + at, sizeof(note));
		if (note.n_namesz > size || note.n_descsz > size)
			return false;
		if (note.n_namesz == 4 && name + 4 <= size && !memcmp(notes + name, "Go\0", 4))
			return true;
		at = name + ((note.n_namesz + 3U) & ~3U) + ((note.n_descsz + 3U) & ~3U);
	}
	return false;
}

static void read_parts(struct elf_file *elf, int fd, const ElfW(Ehdr) * head)
{
	for (unsigned int i = 0; i < head->e_phnum && i < MAX_HEADERS; i++) {
		ElfW(Phdr) part;

		if (!read_at(fd, &part, sizeof(part), head->e_phoff + (uint64_t)i * sizeof(part)))
			return;
		if (part.p_type == PT_INTERP)
			read_loader(elf, fd, &part);
		else if (part.p_type == PT_NOTE)
			elf->go |= has_go_note(fd, &part);
	}
}

/* Where the name stands in a table of names; names that end alike may share their end. */
static size_t find_names(int fd, const ElfW(Shdr) * names, ElfW(Word) found[MAX_SAME_NAME])
{
	size_t count = 0;
	char *chunk = malloc(CHUNK);

	for (uint64_t at = 0; chunk && at < names->sh_size; at += CHUNK - sizeof(wanted)) {
		uint64_t left = names->sh_size - at;
		size_t size = left < CHUNK ? (size_t)left : CHUNK;
		const char *hit = chunk;

		if (!read_at(fd, chunk, size, names->sh_offset + at))
			break;
		while (count < MAX_SAME_NAME &&
		       (hit = memmem(hit, size - (size_t)(hit - chunk), wanted, sizeof(wanted)))) {
			found[count++] = (ElfW(Word))(at + (size_t)(hit - chunk));
			hit++;
		}
	}
	free(chunk);
	return count;
}

static bool is_one_of(ElfW(Word) name, const ElfW(Word) * names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (names[i] == name)
			return true;
	}
	return false;
}

static bool defines(int fd, const ElfW(Shdr) * symbols, const ElfW(Shdr) * names)
{
	ElfW(Word) places[MAX_SAME_NAME];
	ElfW(Sym) symbol[CHUNK / sizeof(ElfW(Sym)) / 8];
	size_t count;

	if (names->sh_size > MAX_NAMES || symbols->sh_size > MAX_NAMES)
		return false;
	count = find_names(fd, names, places);
	for (uint64_t at = 0; count && at < symbols->sh_size; at += sizeof(symbol)) {
		uint64_t left = symbols->sh_size - at;
		size_t size = left < sizeof(symbol) ? (size_t)left : sizeof(symbol);

		if (!read_at(fd, symbol, size, symbols->sh_offset + at))
			return false;
		for (size_t i = 0; i < size / sizeof(symbol[0]); i++) {
			if (symbol[i].st_shndx != SHN_UNDEF &&
			    is_one_of(symbol[i].st_name, places, count))
				return true;
		}
	}
	return false;
}

static void read_symbols(struct elf_file *elf, int fd, const ElfW(Ehdr) * head)
{
	for (unsigned int i = 0; i < head->e_shnum && i < MAX_HEADERS && !elf->has_verbs; i++) {
		ElfW(Shdr) symbols, names;

		if (!read_at(fd, &symbols, sizeof(symbols),
			     head->e_shoff + (uint64_t)i * sizeof(symbols)))
			return;
		if ((symbols.sh_type != SHT_SYMTAB && symbols.sh_type != SHT_DYNSYM) ||
		    symbols.sh_link >= head->e_shnum)
			continue;
		if (read_at(fd, &names, sizeof(names),
			    head->e_shoff + (uint64_t)symbols.sh_link * sizeof(names)))
			elf->has_verbs = defines(fd, &symbols, &names);
	}
}

int elf_file_read(struct elf_file *elf, int fd)
{
	ElfW(Ehdr) head;

	memset(elf, 0, sizeof(*elf));
	if (!read_at(fd, &head, sizeof(head), 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
		return -ENOEXEC;
	elf->other_bits = head.e_ident[EI_CLASS] != OWN_CLASS;
	/* Both layouts have this field at the same place. */
	elf->machine = head.e_machine == OWN_MACHINE ? 0 : head.e_machine;
	if (elf->other_bits || elf->machine)
		return 0;
	if (head.e_phentsize == sizeof(ElfW(Phdr)))
		read_parts(elf, fd, &head);
	if (head.e_shentsize == sizeof(ElfW(Shdr)))
		read_symbols(elf, fd, &head);
	return 0;
}
