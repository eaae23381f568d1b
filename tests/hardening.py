#!/usr/bin/env python3
"""Checks that executables have the protections of deploy/hardening.cmake. Prints each that is missing; ends with 1 then.

    hardening.py EXECUTABLE...
"""

import pathlib
import platform
import re
import subprocess
import sys


def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *arguments], check=True, text=True, capture_output=True).stdout


def missing(path):
    header, dynamic, segments, symbols = (readelf(option, path) for option in ("-h", "-d", "-l", "--dyn-syms"))
    stack = re.search(r"GNU_STACK(?:\s+0x\w+){5}\s+(\w+)", segments)
    if "DYN (Position-Independent Executable" not in header:
        yield "it is no position-independent executable"
    if "GNU_RELRO" not in segments or "BIND_NOW" not in dynamic:
        yield "its relocations stay writable (no full RELRO)"
    if not stack or "E" in stack[1]:
        yield "its stack is executable"
    if re.search(r"\((RPATH|RUNPATH)\)", dynamic):
        yield "it searches libraries in folders of its own"
    if "__stack_chk_fail" not in symbols:
        yield "no function has a stack protector"
    if not re.search(r"\b__mem\w+_chk", symbols):
        yield "no function is fortified"
    # Debian's crt1.o has no mark for it, so the executable has none either; its code is prepared all the same.
    if platform.machine() == "x86_64" and pathlib.Path(path).read_bytes().count(b"\xf3\x0f\x1e\xfa") < 1000:
        yield "its code has no branch targets for control-flow enforcement (CET)"


def main():
    errors = [f"{path}: {what}" for path in sys.argv[1:] for what in missing(path)]
    print("\n".join(errors) if errors else f"{len(sys.argv) - 1} executables have all protections")
    sys.exit(1 if errors or len(sys.argv) < 2 else 0)


if __name__ == "__main__":
    main()
