#!/usr/bin/env python3
"""The layout of the manager's page at 400 and 1440 pixels, light and dark, in the states that its readers meet: nothing is cut, the
reason comes first, numbers have units, times are of one clock, and axe-core (RW_AXE, tests/provide-axe.sh) finds no violation.
"""

import os
import pathlib
import re
import time
import unittest

from browser import need_browser
from harness import main
from made_up_page import PageTest, give_history, row_of

need_browser()

from selenium.webdriver.common.keys import Keys  # noqa: E402

# The least contrast of texts with what is behind them (WCAG 2.1, 1.4.3), by the page's computed colours.
CONTRAST = """
  const parts = (color) => color.match(/[\\d.]+/g).map(Number);
  const luminance = (color) => parts(color).slice(0, 3).map((c) => c / 255)
    .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const color = getComputedStyle(node).backgroundColor;
      if ((parts(color)[3] ?? 1) === 1) return color;
    }
    return "rgb(255, 255, 255)";
  };
  let least = [99, ""];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!own || !node.offsetParent || ["SCRIPT", "STYLE"].includes(node.tagName)) continue;
    const [light, dark] = [luminance(getComputedStyle(node).color), luminance(behind(node))].sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05);
    if (ratio < least[0]) least = [ratio, node.outerHTML.slice(0, 120)];
  }
  return least;
"""
# The elements that show less than they have, or reach beyond the window.
CUT = """
  const nameOf = (node) => `${node.tagName}#${node.id}.${node.getAttribute("class")}: ${node.textContent.slice(0, 80)}`;
  const width = document.documentElement.clientWidth, found = [];
  if (document.documentElement.scrollWidth > width) found.push(`the page is ${document.documentElement.scrollWidth} px wide`);
  for (const node of document.querySelectorAll("body *")) {
    if (!node.checkVisibility() || node.closest("svg, script, style") || node.classList.contains("hidden")) continue;
    const style = getComputedStyle(node), box = node.getBoundingClientRect();
    const scrolls = ["auto", "scroll"].includes(style.overflowY);
    if (box.width && (box.right > width + 1 || box.left < -1)) found.push(`beyond the window: ${nameOf(node)}`);
    if (style.textOverflow === "ellipsis" || style.webkitLineClamp !== "none") found.push(`shortened: ${nameOf(node)}`);
    if (node.clientWidth && node.scrollWidth > node.clientWidth + 1) found.push(`too wide: ${nameOf(node)}`);
    if (node.clientHeight && !scrolls && style.overflowY !== "visible" && node.scrollHeight > node.clientHeight + 1) found.push(`too high: ${nameOf(node)}`);
  }
  return found;
"""
# What is above the end of the verdict beside it: text, by the elements that have it.
ABOVE = """
  const end = document.querySelector("#verdict").getBoundingClientRect().bottom;
  return [...document.querySelectorAll("body *")].filter((node) => node.checkVisibility() && !node.classList.contains("hidden")
      && !node.closest("#verdict") && node.innerText?.trim() && !node.contains(document.querySelector("#verdict"))
      && node.getBoundingClientRect().top < end).map((node) => node.outerHTML.slice(0, 120));
"""
VIOLATIONS = """return axe.run(document, {resultTypes: ["violations"]}).then(({violations}) =>
  violations.map(({id, nodes}) => [id, ...nodes.map(({html}) => html.slice(0, 200))]))"""

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
# What has digits and is no number: times, names, versions, digests, and the key-values of log lines.
NO_NUMBER = rf"{TIME}|\b[a-z]+(?:-[a-z]+)*-\d+|\bid-\d+|\d+\.\d+\.\d+|\b[0-9a-f]{{8,}}\b|\w+=\S+"
NUMBER = r"\d[\d,]*(?:\.\d+)?"
NOUN = r"(?:client certificate|earlier cause|runtime|event|request|connection|reconcile|error|batch|CA|loss|time)(?:e?s)?\b"
UNIT = rf" ?(?:(?:ms|s|min|h|d|seconds|hours|days)\b|%|/s\b|\w+/s\b|{NOUN}|of {NUMBER} {NOUN})"
REFUSED = ("the gateway does not reach the manager's listener: have the Service's endpoints and the VirtualService's destination looked at, "
           "then the NetworkPolicies between both; events wait on the runtime")


def cut_off(rows):
    """The rows with nothing that arrives."""
    for row in rows:
        row.update(heartbeat="silent", condition="ill", reason="ListenerUnavailable", probeReason="ListenerUnavailable", message=REFUSED)
    return rows


def warning(times, names, **fields):
    return {"line": {"time": "2026-11-23T18:32:42.814Z", "level": "warning", "name": names[-1], **fields}, "times": times, "names": names}


class States(PageTest):
    """Each `show_` opens the page in one state."""

    def show_healthy(self):
        self.serve([row_of(i) for i in range(1, 21)])

    def show_upstream_down(self):
        rows = cut_off([row_of(i) for i in range(1, 21)])
        self.serve(rows, conditions=[{"type": "StandsBack", "reason": "Shadow", "message": "nothing is written"}], notReady=["not in step with KCP: kymas"],
                   warnings=[warning(20, ["runtime-19", "runtime-20"], msg="cannot connect to the upstream", error="connection refused")],
                   rotation={"phase": "distributing", "missing": 2, "waiting": "2 runtimes: runtime-1, runtime-2", "deadline": "2031-01-01T00:00:00Z"},
                   rollouts=[{"component": "watcher", "phase": "Paused", "reason": "CanaryFailed", "message": "runtime-3 crashes",
                              "counts": {"total": 20, "ready": 1, "failed": 1}}])

    def show_thousand_runtimes(self):
        long_name = "kyma-" + "0123456789" * 6
        rows = cut_off([row_of(i) for i in range(1, 1000)] + [row_of(1000, kyma=long_name, state="not_ready")])
        server = self.serve(rows, certificates={"expiring": 1000, "earliest": int(time.time()) + 80000, "earliestRuntime": long_name},
                            warnings=[warning(1000, ["runtime-998", "runtime-999", long_name], msg="watcher on a runtime: not_ready",
                                              reason="NoEndpoints", message=REFUSED)])
        give_history(server)
        self.browser.run("readMemory()")
        self.browser.wait("!document.querySelector('#memory').hidden", "the history is shown")
        self.assertTrue(self.browser.text("#causes").startswith("1,000 runtimes: ListenerUnavailable (runtime-1, "), self.browser.text("#causes"))

    def show_manager_gone(self):
        server = self.serve(cut_off([row_of(i) for i in range(1, 21)]))
        server.kill()
        self.browser.wait("document.body.classList.contains('stale')", "the loss is shown")
        self.assertEqual(self.browser.text("#headline"), "■ unknown: no leader: the manager does not respond")

    def show_past(self):
        self.show_thousand_runtimes()
        self.browser.run("chooseMoment(minuteNow() - 3600)")
        self.browser.wait("document.querySelector('#not-well a')", "the past is shown")

    def show_details(self):
        self.show_thousand_runtimes()
        self.browser.run("document.querySelector('#table').focus()")
        self.browser.press(Keys.HOME, Keys.ENTER)
        self.browser.wait("document.querySelector('#details dl')", "the details are shown")

    def check_each(self, check, schemes=("light", "dark")):
        """Calls `check(width)` in each state, at each width, in each scheme."""
        self.addCleanup(self.browser.driver.execute_cdp_cmd, "Emulation.clearDeviceMetricsOverride", {})
        for show in ("healthy", "upstream_down", "thousand_runtimes", "manager_gone", "past", "details"):
            self.browser.open("about:blank")
            getattr(self, f"show_{show}")()
            for width in (400, 1440):
                self.resize(width)
                for scheme in schemes:
                    self.browser.prefer(scheme)
                    with self.subTest(state=show, width=width, scheme=scheme):
                        check(width)

    def resize(self, width):
        self.browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
        self.browser.wait("innerWidth === arguments[0]", "the window has its width", width)
        self.browser.run("onResize()")


class Layout(States):
    def test_page_cuts_nothing(self):
        self.check_each(lambda width: self.assertEqual(self.browser.run(CUT), []), schemes=("light",))

    def test_reason_comes_before_all_else_in_a_narrow_window(self):
        def check(width):
            if width == 400:
                self.assertEqual(self.browser.run(ABOVE), [])
        self.check_each(check, schemes=("light",))

    def test_numbers_have_units_and_times_are_of_one_clock(self):
        def check(_):
            text = self.browser.text("body")
            self.assertEqual(re.findall(r"[^\n]*\d\d:\d\d[^\n]*", re.sub(TIME, "", text)), [])
            rest = re.sub(NO_NUMBER, "", text)
            self.assertEqual(re.findall(rf"[^\n]*?(?<![\d,.]){NUMBER}(?![\d,.])(?!{UNIT})[^\n]*", rest), [])
        self.check_each(check, schemes=("light",))

    def test_colour_schemes_have_contrast(self):
        rows = [row_of(i) for i in range(1, 21)]
        rows[2].update(heartbeat="silent", reason="NoHeartbeat", probeReason="GatewayUnreachable", state="failed", condition="ill")
        rows[3].update(heartbeat="degraded", state="not_ready", condition="ill")
        colours = set()
        for scheme in ("light", "dark"):
            self.browser.prefer(scheme)
            self.serve(rows, conditions=[{"type": "StandsBack", "reason": "Shadow", "message": "nothing is written"}],
                       warnings=[{"line": {"time": "2026-11-23T18:32:42.814Z", "level": "error", "msg": "m", "a": 1}}])
            self.browser.run("document.querySelector('#table').focus()")
            self.browser.press(Keys.HOME)
            least, where = self.browser.run(CONTRAST)
            self.assertGreaterEqual(least, 4.5, f"{scheme}: {where}")
            colours.add(self.browser.run("return getComputedStyle(document.body).backgroundColor"))
            self.check_quiet()
        self.assertEqual(len(colours), 2)
        self.browser.click("#theme")
        self.browser.click("#theme")
        self.assertEqual(self.browser.text("#theme"), "Colours: dark")

    @unittest.skipUnless(os.environ.get("RW_AXE"), "RW_AXE does not name axe-core (tests/provide-axe.sh)")
    def test_axe_finds_no_violation(self):
        axe = pathlib.Path(os.environ["RW_AXE"]).read_text()
        def check(_):
            if not self.browser.run("return window.axe !== undefined"):
                self.browser.run(axe)
            self.assertEqual(self.browser.run(VIOLATIONS), [])
        self.check_each(check)

    def test_page_fits_narrow_windows(self):
        self.serve([row_of(i) for i in range(1, 21)])
        self.addCleanup(self.browser.driver.execute_cdp_cmd, "Emulation.clearDeviceMetricsOverride", {})
        for width in (1600, 1280, 800, 420):
            self.browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                                {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
            self.browser.wait("document.documentElement.scrollWidth <= innerWidth", f"nothing is cut off at {width} pixels")
        self.assertTrue(self.browser.run("""const search = document.querySelector('#search'), context = document.createElement('canvas').getContext('2d');
          context.font = getComputedStyle(search).font;
          return context.measureText(search.placeholder).width < search.clientWidth - 20"""), "the search's placeholder fits")


if __name__ == "__main__":
    main()
