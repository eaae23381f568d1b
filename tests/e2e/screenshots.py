#!/usr/bin/env python3
"""Makes the README's pictures of the manager's page, each of a real system in that state.

    tests/e2e/screenshots.py [--runtimes N] [--only NAME] [FOLDER]     default: 5000 runtimes, deploy/screenshots
"""

import argparse
import pathlib
import shutil
import sys
import tempfile
import threading

from browser import Browser, need_browser
from dev import WATCHED, Dev
from harness import BINARY, ROOT, Process, free_port, pause, skr_manifests
from quiet_fleet import QuietFleet

need_browser()

LIVE = "rows.size === arguments[0] && [...rows.values()].every((row) => row.heartbeat === 'live')"


class Load(threading.Thread):
    """Changes the watched object of one runtime after the other."""

    def __init__(self, dev, runtimes, every):
        super().__init__(daemon=True)
        self.apis = [dev.skr(f"runtime-{i}") for i in range(1, runtimes + 1)]
        self.every = every
        self.ended = threading.Event()
        self.start()

    def run(self):
        for i in range(100000):
            if self.ended.wait(self.every):
                return
            self.apis[i % len(self.apis)].patch(WATCHED, {"spec": {"channel": f"channel-{i}"}})

    def end(self):
        self.ended.set()
        self.join()


def managed(folder, runtimes, processes):
    """`dev`, and a manager of its own behind the gateway, which reports silence soon."""
    backend = free_port()
    dev = Dev(folder, runtimes, "--no-manager", "--backend", f"127.0.0.1:{backend}")
    processes.append(dev)
    dev.wait_up(60 + runtimes // 10)
    return dev, lambda port: manage(dev, port or backend, processes)


def manage(dev, port, processes):
    manager = Process("manager", [
        BINARY, "manager", "--allow-local-runtimes", "--kubeconfig", dev.folder / "kcp.yaml", "--listen-address", f"127.0.0.1:{port}",
        "--metrics-address", "127.0.0.1:0", "--no-watch-runtimes", "--no-leader-elect", "--ca-propagation", "1s",
        "--skr-manifests", skr_manifests(dev.folder / "skr", "10s"), "--heartbeat-timeout", "25s", "--probe-interval", "5s"])
    processes.append(manager)
    return manager, f"http://127.0.0.1:{manager.wait_listening('admin', 60)}/"


def healthy(browser, folder, processes):
    dev = Dev(folder, 20)
    processes.append(dev)
    dev.wait_up()
    browser.open(f"http://127.0.0.1:{dev.wait_listening('dev-admin')}/")
    browser.wait(LIVE, "all are live", 20, timeout=60)
    load = Load(dev, 20, 0.02)
    pause(70)
    return load.end


def upstream_down(browser, folder, processes):
    dev, start = managed(folder, 20, processes)
    manager, page = start(None)
    browser.open(page)
    browser.wait(LIVE, "all are live", 20, timeout=60)
    manager.terminate(30)
    _, page = start(free_port())  # where the gateway does not look for it
    browser.open(page)
    browser.wait("latest && latest.heartbeats.silent === 20", "all are silent", timeout=90)
    load = Load(dev, 20, 0.2)
    browser.wait("[...rows.values()].filter((row) => row.probeReason).length === 20", "probes have failed", timeout=90)
    return load.end


def past(browser, folder, processes):
    end = upstream_down(browser, folder, processes)
    pause(100)
    minute = browser.run("return readMemory().then(() => memory.minutes.at(-2)[0])")
    browser.run("location.hash = `#/?at=${arguments[0]}`", minute)
    browser.wait("document.querySelector('#not-well a')", "the minute is shown")
    return end


def details(browser, folder, processes):
    end = upstream_down(browser, folder, processes)
    pause(20)
    browser.run("location.hash = '#/runtime/runtime-7'")
    browser.wait("document.querySelector('.events')", "the details are shown")
    return end


def rotation(browser, folder, processes):
    dev = Dev(folder, 20, "--rotate-root-every", "15s", "--ca-grace-period", "2m")
    processes.append(dev)
    dev.wait_up()
    browser.open(f"http://127.0.0.1:{dev.wait_listening('dev-admin')}/")
    browser.wait(LIVE, "all are live", 20, timeout=60)
    load = Load(dev, 20, 0.1)
    browser.wait("latest.rotation.phase === 'grace'", "a rotation is under way", timeout=60)
    pause(20)
    return load.end


def many(browser, folder, processes, runtimes):
    fleet = QuietFleet(folder, runtimes)
    processes.append(fleet)
    browser.open(f"http://127.0.0.1:{fleet.install()}/")
    browser.wait(LIVE, "all are live", runtimes, timeout=120)
    fleet.silent.update({"runtime-17", "runtime-1204", "runtime-3999"})
    browser.wait("latest.heartbeats.silent === 3", "three are silent", timeout=240)
    pause(30)
    return lambda: None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtimes", type=int, default=5000)
    parser.add_argument("--only", help="healthy, past, details, upstream-down, rotation or many")
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=ROOT / "deploy" / "screenshots")
    asked = parser.parse_args()
    asked.folder.mkdir(exist_ok=True)
    scenes = {"healthy": ("light", healthy), "past": ("light", past), "details": ("light", details), "upstream-down": ("dark", upstream_down), "rotation": ("light", rotation),
              "many": ("dark", lambda *of: many(*of, asked.runtimes))}
    browser = Browser(1280, 1000)
    try:
        for name, (scheme, show) in scenes.items():
            if asked.only not in (None, name):
                continue
            processes, folder = [], pathlib.Path(tempfile.mkdtemp(prefix="rw-screenshots-"))
            try:
                browser.prefer(scheme)
                end = show(browser, folder, processes)
                browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
                    "width": 1280, "height": browser.run("return document.documentElement.scrollHeight"), "deviceScaleFactor": 1,
                    "mobile": False})
                pause(1)
                browser.screenshot(asked.folder / f"{name}.png", "dialog" if name == "details" else None)
                browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
                end()
                print(f"{name}.png", (asked.folder / f"{name}.png").stat().st_size // 1024, "KiB", flush=True)
            finally:
                browser.open("about:blank")
                for each in reversed(processes):
                    each.kill()
                shutil.rmtree(folder, ignore_errors=True)
    finally:
        browser.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
