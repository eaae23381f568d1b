#!/usr/bin/env python3
"""What an executable says of itself, read by readelf: it may be of another architecture than this machine.

    elf.py architecture EXECUTABLE
    elf.py libraries EXECUTABLE SYSROOT

The first prints Debian's name of its architecture, and the GNU name of the machine. The second prints its loader and the shared
libraries that it needs, and those that they need, as paths in SYSROOT, where the loader finds them: in the folders that a file names
(RUNPATH), then in those of the system; not in /usr/local. It ends with 1 if one is missing."""

import os
import re
import subprocess
import sys

MACHINES = {"Advanced Micro Devices X86-64": ("amd64", "x86_64-linux-gnu"), "AArch64": ("arm64", "aarch64-linux-gnu")}


def readelf(path, *options):
    done = subprocess.run(["readelf", "--wide", *options, path], text=True, capture_output=True, env={**os.environ, "LC_ALL": "C"})
    return done.stdout if done.returncode == 0 else sys.exit(f"elf.py: {path} is no executable or library")


def architecture(path):
    machine = re.search(r"Machine:\s+(.+)", readelf(path, "--file-header"))[1]
    return MACHINES[machine] if machine in MACHINES else sys.exit(f"elf.py: {path}: there are no images of {machine}")


def libraries(executable, sysroot):
    triplet = architecture(executable)[1]
    loader = re.search(r"interpreter: (\S+)\]", readelf(executable, "--program-headers"))[1]
    found, missing, to_read = {os.path.basename(loader): loader}, set(), [(executable, "/usr/bin")]
    while to_read:
        path, folder = to_read.pop()
        dynamic = readelf(path, "--dynamic")
        named = re.search(r"\(RUNPATH\).*\[(.*)\]", dynamic)
        folders = [each.replace("$ORIGIN", folder) for each in named[1].split(":")] if named else []
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
            if name in found:
                continue
            for place in [*folders, f"/lib/{triplet}", f"/usr/lib/{triplet}", "/lib", "/usr/lib"]:
                if os.path.exists(f"{sysroot}/{place}/{name}"):
                    found[name] = os.path.normpath(f"{place}/{name}")
                    to_read.append((f"{sysroot}/{place}/{name}", place))
                    break
            else:
                missing.add(f"elf.py: {path} needs {name}, which {sysroot} has not")
    if missing:
        sys.exit("\n".join(sorted(missing)))
    return sorted(found.values())


if __name__ == "__main__":
    if sys.argv[1:2] == ["architecture"] and len(sys.argv) == 3:
        print(*architecture(sys.argv[2]))
    elif sys.argv[1:2] == ["libraries"] and len(sys.argv) == 4:
        print(*libraries(*sys.argv[2:]), sep="\n")
    else:
        sys.exit(__doc__)
