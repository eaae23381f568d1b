#!/usr/bin/env python3
"""Each file has a copyright and a licence whose text is in LICENSES/ (REUSE 3.0), by `reuse lint` of Debian's package reuse. Ends
with 77 without it."""

import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def main():
    if not shutil.which("reuse"):
        print("skipped: reuse is not installed")
        return 77
    done = subprocess.run(["reuse", "--root", ROOT, "lint"], text=True, capture_output=True, timeout=120)
    print(done.stdout + done.stderr)
    if (ROOT / "LICENSE").read_bytes() != (ROOT / "LICENSES" / "Apache-2.0.txt").read_bytes():
        print("LICENSE and LICENSES/Apache-2.0.txt differ")
        return 1
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
