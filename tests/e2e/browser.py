"""Headless Chromium for tests of the page, driven by Debian's Selenium and ChromeDriver. It reaches nothing but loopback."""

import base64
import importlib.util
import json
import os
import shutil
import sys
import urllib.parse

from harness import skip, wait_until

DEBIAN_PYTHON = "/usr/bin/python3"  # the one that has Debian's packages
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


def need_browser():
    """Skips the script without a browser. Runs it with Debian's Python if this one has no Selenium."""
    if not CHROMIUM or not DRIVER:
        skip("there is no chromium with its chromedriver (deploy/install-packages.sh test)")
    if importlib.util.find_spec("selenium"):
        return
    if os.path.realpath(sys.executable) == os.path.realpath(DEBIAN_PYTHON) or not os.access(DEBIAN_PYTHON, os.X_OK):
        skip("there is no selenium for Python (deploy/install-packages.sh test)")
    os.execv(DEBIAN_PYTHON, [DEBIAN_PYTHON, "-B", *sys.argv])


class Browser:
    """One window. `problems` holds what the console and the network showed that must not be."""

    def __init__(self, width=1280, height=960):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", f"--window-size={width},{height}",
                         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run",
                         "--no-proxy-server", "--disable-lcd-text", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        self.driver.set_page_load_timeout(30)
        self.driver.set_script_timeout(30)

    def kill(self):
        self.driver.quit()

    def open(self, address):
        self.driver.get(address)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def texts(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])].map((each) => each.innerText)", selector)

    def wait(self, script, what, *arguments, timeout=20):
        """Waits until the expression is true, and returns its value."""
        return wait_until(lambda: self.run(f"return {script}", *arguments), timeout,
                          lambda: f"{what}; the page shows:\n{self.text('body')[:3000]}", every=0.05)

    def press(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains
        ActionChains(self.driver).send_keys(*keys).perform()

    def click(self, selector):
        self.driver.find_element("css selector", selector).click()

    def prefer(self, scheme):
        """Sets light or dark, as the system's setting."""
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": scheme}]})

    def console(self):
        """The lines of the console since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def origins(self):
        """The origins of all requests since the last call."""
        found = set()
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = urllib.parse.urlsplit(message["params"]["request"]["url"])
                if url.scheme != "data":
                    found.add(f"{url.scheme}://{url.netloc}")
        return found

    def screenshot(self):
        """The whole page as a PNG, also what is below the window."""
        width, height = self.run("return [innerWidth, document.documentElement.scrollHeight]")
        taken = self.driver.execute_cdp_cmd("Page.captureScreenshot", {
            "captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}})
        return base64.b64decode(taken["data"])
