#!/usr/bin/env python3
"""Compiles each source of the libraries and programs alone, as -DRW_UNITY=OFF does, as far as its syntax: in a unit of several a source
finds what another one includes.

    alone.py BUILD [SOURCE...]

BUILD is the build whose compiler and options are used; precompiled headers are made in its folder `alone`. Prints what does not
compile; ends with 1 then.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("core", "tls", "k8s", "reactors")
KEPT = ("CMAKE_TOOLCHAIN_FILE", "CMAKE_CXX_COMPILER", "CMAKE_BUILD_TYPE", "CMAKE_EXE_LINKER_FLAGS", "CMAKE_SHARED_LINKER_FLAGS",
        "RW_WERROR")


def run(*command, **options):
    return subprocess.run([*map(str, command)], text=True, capture_output=True, timeout=600, **options)


def configure(build):
    """Returns the folder of a build without units, with its precompiled headers."""
    folder = build / "alone"
    cache = (build / "CMakeCache.txt").read_text()
    options = [f"-D{name}={value}" for name, value in re.findall(r"^(\w+):\w+=(.*)$", cache, flags=re.MULTILINE) if name in KEPT]
    done = run("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *options, "-DRW_UNITY=OFF", "-DRW_TESTS=OFF", "-DRW_BENCH=OFF",
               "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    listed = run("ninja", "-C", folder, "-t", "targets", "all").stdout
    headers = re.findall(r"^(\S+cmake_pch\.hxx\.pch):", listed, flags=re.MULTILINE)
    done = run("ninja", "-C", folder, *headers)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    return folder


def errors_of(folder, entry):
    command = shlex.split(entry["command"])
    at = command.index("-o")
    command[at:at + 2] = []
    command[command.index("-c")] = "-fsyntax-only"
    while not os.path.basename(command[0]).startswith(("clang", "g++", "c++")):  # ccache, and its environment
        command = command[1:]
    done = run(*command, cwd=folder)
    return done.stderr if done.returncode != 0 else ""


def main(build, sources):
    folder = configure(build.resolve())
    entries = []
    for entry in json.loads((folder / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        own = file.is_relative_to(ROOT) and file.relative_to(ROOT).parts[0] in FOLDERS
        if own and (not sources or entry["file"].endswith(tuple(sources))):
            entries.append(entry)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failed = [errors for errors in pool.map(lambda entry: errors_of(folder, entry), entries) if errors]
    print("\n".join(failed) if failed else f"{len(entries)} sources compile alone")
    return 1 if failed or not entries else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2:]))
