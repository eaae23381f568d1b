#!/usr/bin/env python3
"""Makes the README's pictures of the manager's page, each of a real system in that state.

    tests/e2e/screenshots.py [--only NAME] [FOLDER]     default: all, to deploy/screenshots

The test e2e.picture_NAME makes each to the build's folder, and compares it with nothing.
"""

import argparse
import base64
import pathlib
import shutil
import struct
import sys
import tempfile
import threading
import zlib

from browser import Browser, need_browser
from dev import WATCHED, Dev
from harness import BINARY, ROOT, Process, free_port, pause, skr_manifests
from quiet_fleet import QuietFleet

need_browser()

LIVE = "rows.size === arguments[0] && [...rows.values()].every((row) => row.heartbeat === 'live')"

# Of a PNG its width, height, 256 colours (the most frequent ones that differ visibly), and the nearest of these for each pixel.
PALETTE = """
  const image = new Image();
  image.src = `data:image/png;base64,${arguments[0]}`;
  return image.decode().then(() => {
    const {width, height} = image, drawing = new OffscreenCanvas(width, height).getContext("2d");
    drawing.drawImage(image, 0, 0);
    const pixels = new Uint32Array(drawing.getImageData(0, 0, width, height).data.buffer), counts = new Map();
    for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
    const distance = (a, b) => [0, 8, 16].reduce((sum, bit) => sum + ((a >> bit & 255) - (b >> bit & 255)) ** 2, 0);
    const colours = [];
    for (const [pixel] of [...counts].sort((a, b) => b[1] - a[1])) {
      if (colours.length < 256 && colours.every((colour) => distance(colour, pixel) > 100)) colours.push(pixel);
    }
    for (const pixel of counts.keys()) {
      counts.set(pixel, colours.reduce((best, colour, i) => distance(colour, pixel) < distance(colours[best], pixel) ? i : best, 0));
    }
    let indices = "";
    for (const pixel of pixels) indices += String.fromCharCode(counts.get(pixel));
    return [width, height, colours, btoa(indices)];
  });"""


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
    pause(40)
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
    browser.wait("latest.verdict.level === 'outage' && [...rows.values()].every((row) => row.probeReason)", "probes have failed", timeout=90)
    return load.end


def many(browser, folder, processes):
    fleet = QuietFleet(folder, 1000)
    processes.append(fleet)
    browser.open(f"http://127.0.0.1:{fleet.install()}/")
    browser.wait(LIVE, "all are live", 1000, timeout=120)
    fleet.silent.update({"runtime-17", "runtime-204", "runtime-399"})
    browser.wait("latest.heartbeats.silent === 3", "three are silent", timeout=240)
    pause(5)
    return lambda: None


def indexed(browser, png):
    """The picture with at most 256 colours (https://www.w3.org/TR/png/), a third of the size."""
    width, height, colours, indices = browser.run(PALETTE, base64.b64encode(png).decode())
    pixels = base64.b64decode(indices)
    rows = b"".join(b"\0" + pixels[y * width:(y + 1) * width] for y in range(height))
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
              (b"PLTE", b"".join(struct.pack("<I", colour)[:3] for colour in colours)), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks)


SCENES = {"healthy": ("light", healthy), "upstream-down": ("dark", upstream_down), "many": ("dark", many)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=SCENES)
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=ROOT / "deploy" / "screenshots")
    asked = parser.parse_args()
    asked.folder.mkdir(exist_ok=True)
    browser = Browser(1280, 1000)
    try:
        for name, (scheme, show) in SCENES.items():
            if asked.only not in (None, name):
                continue
            processes, folder = [], pathlib.Path(tempfile.mkdtemp(prefix="rw-screenshots-"))
            try:
                browser.prefer(scheme)
                end = show(browser, folder, processes)
                picture = indexed(browser, browser.screenshot())
                (asked.folder / f"{name}.png").write_bytes(picture)
                end()
                print(f"{name}.png", len(picture) // 1024, "KiB", flush=True)
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
