#!/usr/bin/env python3
"""Foreign bytes cost what they weigh: each parser reads texts of many shapes, of three sizes, each twice the one before. Their
instructions, which callgrind counts, grow as the size does and stay below a bound for each byte; so does their memory.

    linear.py [--binary PATH] [--size BYTES] [PARSER...]

BYTES is the smallest size: 16,384 as a test, 1048576 by hand. Prints the dearest shapes of each parser.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
GROWTH = 2.5  # of what doubles
INSTRUCTIONS = 200  # for each byte
FIXED = 20000  # instructions of any text
DOM_FIXED = 4000000  # of a text that may be dense, since it is small: Boost.JSON builds and frees json_budget::least_memory
MEMORY = 6  # bytes for each byte, beside the text; 4 of them are the index, touched only where there are tokens
DOM_MEMORY = 12
# Of yaml-cpp's scanner, and its tokens; a kubeconfig has a bound on its nodes, and both are at most 1 MiB. Of a query: a text for each
# element of a list, in a head of 16 KiB.
OF_PARSER = {"kubeconfig": (10000, 300), "manifests": (10000, 300), "query": (INSTRUCTIONS, 32)}
FIXED_MEMORY = 9 << 17  # token_index::kept_capacity, 4 bytes for each, and what any text needs
DOM_FIXED_MEMORY = (1 << 20) + FIXED_MEMORY  # json_budget::least_memory
ENVIRONMENT = {**os.environ, "SIMDJSON_FORCE_IMPLEMENTATION": "westmere"}  # valgrind knows it everywhere


def costs(binary, parser, size, folder):
    """Instructions and memory of each text, by shape and bytes."""
    out = pathlib.Path(folder) / "out"
    ran = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--collect-atstart=no", str(binary), parser,
                          str(size)], env=ENVIRONMENT, capture_output=True, text=True, timeout=1200)
    if ran.returncode != 0:
        sys.exit(f"linear.py: {parser}: {ran.stderr}")
    memory = {(shape, int(of)): int(most) for shape, of, most in (line.split("\t") for line in ran.stdout.splitlines())}
    instructions = {}
    for dump in pathlib.Path(folder).glob("out.*"):
        text = dump.read_text(errors="replace")
        trigger = re.search(r"^desc: Trigger: Client Request: (.*)\t(\d+)$", text, re.MULTILINE)
        if trigger:
            instructions[trigger[1], int(trigger[2])] = int(re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE)[1])
        dump.unlink()
    if set(instructions) != set(memory):
        sys.exit(f"linear.py: {parser}: callgrind has {len(instructions)} profiles of {len(memory)}")
    return {key: (instructions[key], memory[key]) for key in memory}


def faults(parser, found):
    dom = parser == "dom"
    allowed, each_byte = OF_PARSER.get(parser, (INSTRUCTIONS, MEMORY))
    by_shape = {}
    for (shape, size), cost in sorted(found.items()):
        by_shape.setdefault(shape, []).append((size, *cost))
    for shape, rows in by_shape.items():
        for size, instructions, memory in rows:
            if instructions > allowed * size + (DOM_FIXED if dom else FIXED):
                yield f"{parser}: {shape}: {instructions / size:.0f} instructions for each of {size} bytes"
            most = DOM_MEMORY * size + DOM_FIXED_MEMORY if dom else each_byte * size + FIXED_MEMORY
            if memory > most:
                yield f"{parser}: {shape}: {memory} bytes of memory for {size}"
        for before, after in zip(rows, rows[1:]):
            growth = (after[1] + FIXED) / (before[1] + FIXED) / (after[0] / before[0]) * 2
            if growth > GROWTH:
                yield f"{parser}: {shape}: {after[1] / before[1]:.1f} times the instructions for {after[0] / before[0]:.1f} times the bytes"


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--binary", default="build/tests/linear/linear_parsers")
    arguments.add_argument("--size", type=int, default=16384)
    arguments.add_argument("parsers", nargs="*")
    given = arguments.parse_args()
    if shutil.which("valgrind") is None:
        print("skipped: valgrind is not installed")
        return SKIPPED
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        # Debian 12's valgrind can't read this compiler's debug information.
        binary = pathlib.Path(folder) / "linear_parsers"
        subprocess.run(["strip", "--strip-debug", "-o", str(binary), given.binary], check=True)
        for parser in given.parsers or subprocess.run([binary], capture_output=True, text=True, check=True).stdout.splitlines():
            found = costs(binary, parser, given.size, folder)
            wrong += faults(parser, found)
            for title, at in (("instructions", 0), ("memory", 1)):
                dearest = sorted(((cost[at] / size, shape) for (shape, size), cost in found.items()
                                  if size == max(other for name, other in found if name == shape)), reverse=True)[:3]
                print(f"{parser}: {title} for each byte: " + ", ".join(f"{shape} {each:.1f}" for each, shape in dearest))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
