#!/usr/bin/env python3
"""How fast a rotated pull Secret comes to many runtimes while some of them hang, with the whole system in one process
(`runtime-watcher dev`): written directly, and beside it signalled to a simulated Kyma Infrastructure Manager. Prints one
line of JSON for each figure, as bench/system.py does. Ends with 1 if a limit is missed.

    bench/rollout.py [--runtimes N] [--hanging N] [--workers N] [--duration SECONDS] [--only direct,signal]

The limit is for the direct way: 99 % of the runtimes within 10 s. CPU is that of the process: all clusters, the manager
and the simulated machines of all runtimes included; `undisturbed` is the time without that in which the process stood in
a run queue because others used the machine.
"""

import argparse
import math
import pathlib
import shutil
import sys
import tempfile
import time

from system import dev, missed, say, wait_installed, waited_for_cpu, when

from dev import rotate_pull_secret  # noqa: E402  (system.py says where it is)
from harness import pause, wait_until  # noqa: E402

SOURCES = ("configuration", "pull Secret", "trust bundle")


def wait_in_step(one, healthy, timeout):
    """Until the healthy runtimes have what KCP holds."""
    def in_step():
        return all(len(one.have(source)) >= healthy for source in SOURCES)
    wait_until(in_step, timeout, lambda: f"{healthy} runtimes are in step:\n{one.tail()}", every=0.2)


def measure(folder, mode, runtimes, hanging, limit, timeout, *options):
    """Rotates the pull Secret of runtimes that are in step, and tells when it was on 99 % of them."""
    healthy, enough = runtimes - hanging, math.ceil(0.99 * runtimes)
    with dev(folder, runtimes, "--bootstrapper-mode", mode, "--hanging-runtimes", hanging, *options) as one:
        one.wait_up(300)
        wait_installed(one, healthy, 300)
        wait_in_step(one, healthy, 300)
        if mode == "direct":
            wait_until(lambda: one.metric("rw_bootstrapper_runtimes", state="installed") >= healthy, 300,
                       "all bootstrappers are ready", every=0.2)
        pause(2)  # what follows an installation is not what is measured
        say(f"{mode}_in_step", time.monotonic() - one.started, "s", "exec of the process", runtimes=runtimes, hanging=hanging,
            cpu_seconds=round(one.cpu_seconds(), 2))
        start, cpu, waited, sent = len(one.rollout), one.cpu_seconds(), waited_for_cpu(one.popen.pid), time.time()
        rotate_pull_secret(one.kcp(), "second")
        def arrived():
            return [told for told in one.rollout[start:] if told["source"] == "pull Secret" and told["have"] >= enough]
        def on_time():
            return arrived() or time.time() - sent > timeout
        wait_until(on_time, timeout + 10, "the changed pull Secret arrives", every=0.02)
        waited, cpu = waited_for_cpu(one.popen.pid) - waited, one.cpu_seconds() - cpu
        have = len(one.have("pull Secret", start))
        if have < enough:
            missed.append(f"{mode}_99_percent")
            say(f"{mode}_99_percent_missed", have, "runtimes that have it", f"{enough} within {timeout} s")
            return
        took = when(arrived()[0]) - sent
        half = [told for told in one.rollout[start:] if told["source"] == "pull Secret" and 2 * told["have"] >= runtimes]
        say(f"{mode}_99_percent", took, "s", "the client's request", limit=limit, runtimes=runtimes, hanging=hanging,
            half=round(when(half[0]) - sent, 3), undisturbed=round(took - waited, 2), cpu_seconds=round(cpu, 2))
        say(f"{mode}_resident_memory", one.rss() / 2**20, "MiB", runtimes=runtimes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtimes", type=int, default=1000)
    parser.add_argument("--hanging", type=int, default=10)
    parser.add_argument("--workers", type=int, default=25, help="of the simulated Kyma Infrastructure Manager")
    parser.add_argument("--duration", type=float, default=2, help="seconds that it works on one runtime")
    parser.add_argument("--only", default="direct,signal")
    options = parser.parse_args()
    only = options.only.split(",")
    if options.runtimes - options.hanging < math.ceil(0.99 * options.runtimes):
        parser.error("99 % can't be reached while more than 1 % hang")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="runtime-watcher-bench-"))
    try:
        if "direct" in only:
            measure(folder / "direct", "direct", options.runtimes, options.hanging, 10, 60)
        if "signal" in only:
            # Its own time, three times that, and a minute for those that hang.
            whole = options.runtimes * options.duration / options.workers
            measure(folder / "signal", "signal", options.runtimes, options.hanging, None, 3 * whole + 60,
                    "--kim-workers", options.workers, "--kim-duration", f"{round(options.duration * 1000)}ms")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if missed:
        print("bench/rollout.py: limits missed: " + ", ".join(missed), file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
