# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A guest for an emulated PC that is nothing but its own firmware: it fills its memory with numbers that do not repeat, and goes on
writing to some of its pages, so that a migration never finds it still."""

import struct

ROM_BYTES = 64 << 10
ROM_AT = 0xFFFF0000
COUNTER_AT = 1 << 20   # a round over its pages adds one
FILLED_FROM = 2 << 20  # up to the end of memory
WRITTEN_FROM = 4 << 20
WRITTEN_PAGES = 2048
PAGE = 4096
FACTOR, ADDEND, SEED = 1664525, 1013904223, 12345


def code_16(protected_at, gdt_register_at):
    """From the state of a reset to 32 bits with flat segments."""
    return b"".join((
        b"\xfa",                                                               # cli
        b"\x2e\x66\x0f\x01\x16", struct.pack("<H", gdt_register_at),           # lgdt cs:[...]
        b"\x0f\x20\xc0\x0c\x01\x0f\x22\xc0",                                   # cr0 |= 1
        b"\x66\xea", struct.pack("<IH", ROM_AT + protected_at, 8),             # jmp 8:...
    ))


def code_32(memory):
    fill = b"".join((
        b"\x69\xc0", struct.pack("<I", FACTOR),                                # imul eax, FACTOR
        b"\x05", struct.pack("<I", ADDEND),                                    # add eax, ADDEND
        b"\xab",                                                               # stosd
    ))
    write = b"".join((
        b"\xa1", struct.pack("<I", COUNTER_AT),                                # mov eax, [COUNTER_AT]
        b"\x31\xf8\x89\x07",                                                   # xor eax, edi; mov [edi], eax
        b"\x81\xc7", struct.pack("<I", PAGE),                                  # add edi, PAGE
    ))
    forever = b"".join((
        b"\xff\x05", struct.pack("<I", COUNTER_AT),                            # inc [COUNTER_AT]
        b"\xbf", struct.pack("<I", WRITTEN_FROM), b"\xb9", struct.pack("<I", WRITTEN_PAGES),
        write, b"\xe2", struct.pack("b", -len(write) - 2),                     # loop
    ))
    return b"".join((
        b"\x66\xb8\x10\x00\x8e\xd8\x8e\xc0\x8e\xd0",                           # ds, es, ss = 16
        b"\xe4\x92\x0c\x02\x24\xfe\xe6\x92",                                   # address line 20
        b"\xfc\xbf", struct.pack("<I", FILLED_FROM),                           # cld; mov edi, FILLED_FROM
        b"\xb9", struct.pack("<I", (memory - FILLED_FROM) // 4), b"\xb8", struct.pack("<I", SEED),
        fill, b"\xe2", struct.pack("b", -len(fill) - 2),                       # loop
        forever, b"\xeb", struct.pack("b", -len(forever) - 2),                 # jmp
    ))


def firmware(memory):
    """The image, for a guest with so many bytes of memory."""
    gdt_at, register_at, protected_at = 0x100, 0x120, 0x200
    rom = bytearray(ROM_BYTES)
    gdt = struct.pack("<QQQ", 0, 0x00CF9A000000FFFF, 0x00CF92000000FFFF)
    for at, data in ((0, code_16(protected_at, register_at)), (gdt_at, gdt),
                     (register_at, struct.pack("<HI", len(gdt) - 1, ROM_AT + gdt_at)), (protected_at, code_32(memory)),
                     (ROM_BYTES - 16, b"\xe9" + struct.pack("<H", 0x10000 - (ROM_BYTES - 16 + 3)))):  # jmp 0
        rom[at:at + len(data)] = data
    return bytes(rom)


def counter(dump):
    return struct.unpack_from("<I", dump, COUNTER_AT)[0]


def fault(dump):
    """What is wrong with the memory of a guest that has filled it and was stopped anywhere later, or None."""
    number = counter(dump)
    for page in range(WRITTEN_PAGES):
        at = WRITTEN_FROM + page * PAGE
        word = struct.unpack_from("<I", dump, at)[0]
        if word not in (number ^ at, (number - 1) ^ at):
            return f"at {at:#x} is {word:#x}, in round {number}"
    # Of the numbers that follow from each other the second of each page: the first may be written over.
    words = memoryview(dump)[FILLED_FROM:].cast("I")
    step_factor, step_addend, value = 1, 0, SEED
    for _ in range(PAGE // 4):
        step_factor, step_addend = step_factor * FACTOR % 2**32, (step_addend * FACTOR + ADDEND) % 2**32
    for _ in range(2):
        value = (value * FACTOR + ADDEND) % 2**32
    for at in range(1, len(words), PAGE // 4):
        if words[at] != value:
            return f"at {FILLED_FROM + 4 * at:#x} is {words[at]:#x}, not {value:#x}"
        value = (value * step_factor + step_addend) % 2**32
    return None
