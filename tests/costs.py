#!/usr/bin/env python3
"""Prints what of a build and of its tests takes most time.

    costs.py BUILD [CPU]

BUILD has the log of ninja: the wall time of each output that was made, of which several are made at once. CPU is the file that the
tests wrote which ran with RW_TEST_CPU=CPU: the CPU seconds of each, those of the end-to-end tests with their processes.
"""

import collections
import pathlib
import sys

MOST = 40


def largest(title, costs):
    print(f"{title}, in all {sum(costs.values()):.0f} s:")
    for name, seconds in sorted(costs.items(), key=lambda each: -each[1])[:MOST]:
        print(f"  {seconds:8.1f} s  {name}")


def of_build(log):
    """Of each output the last time that it was made."""
    found = {}
    for line in log.read_text().splitlines()[1:]:
        begin, end, _, output, _ = line.split("\t")
        found[output] = (int(end) - int(begin)) / 1000
    return found


def of_tests(file):
    found = collections.Counter()
    for line in file.read_text().splitlines():
        seconds, _, command = line.partition(" ")
        found[" ".join(part.rpartition("/")[2] if i == 0 else part for i, part in enumerate(command.split()))] += float(seconds)
    return found


def main(build, cpu=None):
    largest("Outputs of the build by wall time", of_build(pathlib.Path(build) / ".ninja_log"))
    if cpu and pathlib.Path(cpu).exists():
        largest("Tests by CPU time", of_tests(pathlib.Path(cpu)))


if __name__ == "__main__":
    main(*sys.argv[1:])
