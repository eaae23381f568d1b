#!/usr/bin/env python3
"""Holds executables against deploy/hardening.cmake, and deploy/runtime_watcher-libraries.cmake: what the compiler and the linker
were told must be in the file.

    hardening.py EXECUTABLE...

Prints each protection that is missing; ends with 1 if there is one, and with 77 if there is no readelf.
"""

import re
import shutil
import subprocess
import sys

SKIPPED = 77
X86_64, AARCH64 = "X86-64", "AArch64"
# The instruction that a function begins with which may be called through a pointer, and how many there are at least: an
# executable without -fcf-protection or -mbranch-protection has a few of them, from the C runtime's start files.
LANDING = {X86_64: (b"\xf3\x0f\x1e\xfa", 1000), AARCH64: (b"\x5f\x24\x03\xd5", 1000)}


def readelf(option, path):
    return subprocess.run(["readelf", "--wide", option, path], check=True, text=True, capture_output=True,
                          env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout


def text_of(path):
    """The bytes of the section .text."""
    found = re.search(r"\] \.text\s+PROGBITS\s+\w+ (\w+) (\w+)", readelf("--sections", path))
    with open(path, "rb") as file:
        file.seek(int(found[1], 16))
        return file.read(int(found[2], 16))


def missing(path):
    """Yields a sentence for each protection that the executable lacks."""
    header, segments, dynamic = (readelf(option, path) for option in ("--file-header", "--segments", "--dynamic"))
    symbols = set(re.findall(r" UND (\w+)", readelf("--dyn-syms", path)))

    flags = " ".join(re.findall(r"\(FLAGS(?:_1)?\)\s+(.*)", dynamic))
    if not re.search(r"Type:\s+DYN ", header) or "PIE" not in flags:
        yield "it is not position-independent (-fPIE -pie)"
    if "GNU_RELRO" not in segments:
        yield "it has no read-only relocations (-z relro)"
    if not re.search(r"\bNOW\b|BIND_NOW", flags):
        yield "it binds functions late, which leaves their table writable (-z now)"
    stack = re.search(r"GNU_STACK(?:\s+0x\w+){5}\s+([RWE ]+?)\s+0", segments)
    if not stack or "E" in stack[1]:
        yield "its stack is executable (-z noexecstack)"
    for line in segments.splitlines():
        # The flags are the last but one column, as "RW" or "R E".
        load = re.match(r"\s+LOAD(?:\s+0x\w+){5}\s+(R?)\s*(W?)\s*(E?)\s+0x", line)
        if load and load[2] and load[3]:
            yield "it has memory that is writable and executable"
    if "TEXTREL" in dynamic:
        yield "its code is changed when it is loaded (TEXTREL)"
    if re.search(r"\((RPATH|RUNPATH)\)", dynamic):
        yield "it names folders to find libraries in (RPATH, RUNPATH)"
    if many := re.findall(r"\(NEEDED\).*\[libabsl_", dynamic):
        yield f"it loads {len(many)} libraries of Abseil, which take half of its start"
    if "__stack_chk_fail" not in symbols:
        yield "its functions do not check their stack (-fstack-protector-strong)"
    fortified = {name for name in symbols if re.fullmatch(r"__\w+_chk", name)}
    if not fortified:
        yield "it calls no fortified function (-D_FORTIFY_SOURCE)"

    # Not the note that says IBT and SHSTK of the file as a whole: the linker writes it if every object has it, and Debian 12's
    # start file Scrt1.o and libnghttp2.a have not. The C library enforces neither for programs. So the instructions
    # themselves are counted, which are in force once Debian's objects have the note as well.
    machine = next((name for name in LANDING if name in re.search(r"Machine:\s+(.*)", header)[1]), None)
    if machine:
        instruction, least = LANDING[machine]
        count = text_of(path).count(instruction)
        if count < least:
            yield f"it has {count} landing instructions, less than {least} (-fcf-protection, -mbranch-protection)"


def main(paths):
    if not paths or paths[0].startswith("-"):
        print(__doc__.strip())
        return 0 if paths[:1] in (["-h"], ["--help"]) else 2
    if not shutil.which("readelf"):
        print("skipped: there is no readelf; run deploy/install-packages.sh build")
        return SKIPPED
    found = [f"{path}: {each}" for path in paths for each in missing(path)]
    print("\n".join(found) if found else f"{len(paths)} executables have all protections")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
