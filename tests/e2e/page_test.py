#!/usr/bin/env python3
"""The manager's page in headless Chromium: of a real manager (`dev`), and with states that a test makes up, such as 5,000
runtimes of which some are ill and hostile.
"""

import json
import re
import threading
import time
import urllib.request

from browser import need_browser
from dev import CONFIGURATION, WATCHED, Dev
from harness import TestCase, main, wait_until
from made_up_page import CELLS, PAGE, POLICY, ROWS, MadeUp, PageTest, give_history, row_of, state_of

need_browser()

from selenium.webdriver.common.keys import Keys  # noqa: E402


class WithManager(PageTest):
    def check_transitions(self, page):
        """From its first state on, the latest transition of a runtime is into the condition that is told with it."""
        told = []
        def well():
            with urllib.request.urlopen(f"{page}runtimes?kyma=runtime-3", timeout=10) as answer:
                [row] = json.load(answer)["runtimes"]
            told.append(row["condition"])
            if row["condition"] != "unknown":  # which it is before it is looked at
                self.assertEqual(row["transitions"][0]["condition"], row["condition"])
            return row["condition"] == "well"
        wait_until(well, 60, lambda: f"it is well: {told[-3:]}", every=0.02)
        self.assertIn("underWay", told)

    def test_page_follows_a_change_on_a_runtime(self):
        dev = self.start(Dev(self.folder / "dev", 8, "--bootstrapper-mode", "direct")).wait_up()
        page = f"http://127.0.0.1:{dev.wait_listening('dev-admin')}/"
        self.check_transitions(page)
        self.open(page)
        self.browser.wait(f"{CELLS}.filter((cells) => cells[1] === '✓ installed' && cells[2] === '✓ live').length === 8",
                          "8 runtimes are live", timeout=40)
        self.assertEqual(self.names(), [f"runtime-{i}" for i in range(1, 9)])
        self.assertEqual(self.browser.run("return fetch('/').then((page) => page.headers.get('content-security-policy'))"), POLICY)
        self.assertIn(" · 8 runtimes", self.browser.text("#role"))
        self.assertEqual(self.browser.texts("#stages h3"), ["Runtimes", "Webhooks", "Gateway", "Listener", "Channel", "Queue", "Reconcile"])
        self.assertEqual(self.browser.text("#phases [aria-current]"), "settled")
        self.assertIn("watcher", self.browser.text("#rollouts"))

        rate = "parseFloat(document.querySelectorAll('#stages li')[6].querySelector('.value').innerText)"
        self.browser.wait(f"{rate} === 0", "the reconciles of the start are over", timeout=60)
        ended = self.browser.run("return latest.reconciles.total")
        requests = self.browser.run("return latest.listener.requests")
        dev.skr("runtime-3").patch(WATCHED, {"spec": {"channel": "fast"}})
        self.browser.wait("latest.listener.requests > arguments[0]", "the page counts the request", requests)
        # The event alone causes none, as drift watches are live from the start.
        dev.skr("runtime-3").delete(CONFIGURATION)
        self.browser.wait("latest.reconciles.total > arguments[0]", "the page counts the reconcile", ended)
        self.browser.wait(f"{rate} > 0", "the stage shows a rate")
        heard = self.browser.run("return rows.get('runtime-3').heard")
        self.browser.wait("rows.get('runtime-3').heard > arguments[0]", "the next heartbeat comes without a reload", heard, timeout=90)

        # Details of a runtime, by keyboard alone.
        self.browser.run("document.querySelector('#table').focus()")
        self.browser.press(Keys.HOME, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
        self.browser.wait("document.querySelector('#details').open", "Enter opens the details")
        self.browser.wait("document.querySelector('#details-body').innerText.includes('runtime id')", "they are read")
        self.assertRegex("\n".join(self.browser.texts(".events li")), r"(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ: WatcherInstalled: ", "its events are shown")
        self.assertIn(" of the RuntimeBootstrapper: ", "".join(self.browser.texts(".events li")), "and those of what belongs to it")
        self.assertLessEqual(len(self.browser.run("return latest.warnings")), 2, "a start that goes well is nothing to warn of")
        self.assertEqual(self.browser.text("#details-title"), "runtime-3")
        self.browser.press(Keys.ESCAPE)
        self.browser.wait("!document.querySelector('#details').open", "Escape closes them")
        self.check_quiet()

        # It says so when the manager is gone.
        dev.kill()
        self.browser.wait("document.querySelector('#connection').innerText.includes('does not respond; last update')", "the loss is shown")
        self.browser.wait("document.body.classList.contains('stale')", "what is shown looks old")
        self.assertRegex(self.browser.text("#headline"), "^■ unknown: no leader: ")


class WithStates(PageTest):
    def test_search_and_filters_narrow_the_table(self):
        rows = [row_of(i) for i in range(1, 41)]
        rows[6].update(heartbeat="silent", condition="ill", reason="NoHeartbeat", message="none for 60 s; look at the pod")
        self.serve(rows)
        self.assertEqual(self.names()[:3], ["runtime-7", "runtime-1", "runtime-2"], "the ill come first")
        self.assertEqual(self.browser.text("#headline"), "▲ degraded: 1 of 40 runtimes are ill")
        self.assertEqual(self.browser.text("#causes"),
                         "1 runtime: NoHeartbeat (runtime-7)\nmend NoHeartbeat\nruntime-watcher doctor --runtime runtime-7\nCopy command")
        self.assertEqual(self.browser.run("return document.title"), "(degraded) Runtime Watcher")
        self.browser.press("/")
        self.assertEqual(self.browser.run("return document.activeElement.id"), "search")
        self.browser.press("look at")
        self.browser.wait("visible.length === 1", "the search goes through the reasons")
        self.assertEqual(self.browser.text("#shown"), "1 of 40 runtimes")
        self.browser.press(Keys.ESCAPE)
        self.browser.wait("visible.length === 40", "Escape clears the search")
        self.assertEqual(self.browser.run("return document.activeElement.id"), "table")
        self.browser.click("#filters [data-value='heartbeat=silent']")
        self.browser.wait("visible.length === 1", "the filter leaves one")
        self.assertEqual(self.browser.run("return document.activeElement.getAttribute('aria-pressed')"), "true")
        self.browser.press(Keys.ENTER)
        self.browser.wait("visible.length === 40", "the filter is off again")
        self.check_quiet()

    def test_address_opens_a_runtime_and_narrows_the_table(self):
        rows = [row_of(i) for i in range(1, 41)]
        rows[6].update(heartbeat="silent", condition="ill", reason="NoHeartbeat")
        server = self.start(MadeUp({**state_of(rows), "rows": rows}))
        self.open(f"{server.address}#/runtime/runtime-7?heartbeat=silent&sort=-Lag")
        self.address = server.address
        self.browser.wait("document.querySelector('#details').open", "the link opens the details")
        self.assertEqual(self.browser.text("#details-title"), "runtime-7")
        self.assertEqual(self.names(), ["runtime-7"])
        self.assertEqual(self.browser.run("return document.querySelector('[aria-sort=descending]').innerText"), "Lag ▼")
        self.browser.press(Keys.ESCAPE)
        self.browser.wait("location.hash === '#/?heartbeat=silent&sort=-Lag'", "the address follows")
        self.browser.click("#filters [data-value='heartbeat=silent']")
        self.browser.run("document.querySelector('#search').focus()")
        self.browser.press("time-12")
        self.browser.wait("location.hash === '#/?search=time-12&sort=-Lag'", "what is searched is in the address")
        self.assertEqual(self.names(), ["runtime-12"])
        # A cause names its runtimes, which are links; the browser's way back closes them.
        self.browser.click("#causes a")
        self.browser.wait("document.querySelector('#details').open && location.hash === '#/runtime/runtime-7'", "the link of the cause opens it")
        self.browser.run("window.history.back()")
        self.browser.wait("!document.querySelector('#details').open && location.hash === '#/?search=time-12&sort=-Lag'", "and back")
        self.browser.wait("visible.length === 1 && visible[0].kyma === 'runtime-12'", "to what was searched")
        self.browser.run("location.hash = '#/runtime/%zz?sort=%'")
        self.browser.wait("document.querySelector('#details-title').innerText === '%zz'", "what is malformed does no harm")
        self.check_quiet()

    def serve_history(self, rows):
        server = MadeUp({**state_of(rows), "rows": rows})
        return self.start(server), give_history(server)

    def test_slider_shows_a_minute_of_the_last_day_and_the_address_names_it(self):
        server, last = self.serve_history([row_of(i) for i in range(1, 41)])
        self.open(server.address)
        self.browser.wait("!document.querySelector('#memory').hidden", "the history is read")
        self.assertRegex(self.browser.text("#since"), r"kept since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
        begin = float(self.browser.run("return document.querySelector('#strip .begin').getAttribute('x1')"))
        self.assertAlmostEqual(begin, 1440 - 121, delta=2)
        colours = self.browser.run("return [...document.querySelectorAll('#strip rect')].map((each) => each.getAttribute('class'))")
        self.assertEqual(colours, ["ok", "warning", "bad", "warning", "warning"], "well with an ill one is amber; what is missing is a gap")
        choose = "const at = document.querySelector('#at'); at.value = arguments[0]; at.dispatchEvent(new Event('input'))"
        self.browser.run(choose, last - 3600)
        self.browser.wait("document.querySelector('#not-well a')", "the runtimes of then are read")
        self.assertIn(f"/history?at={last - 3600 + 59}", server.asked)
        self.assertTrue(self.browser.text("#moment").endswith(": outage"), self.browser.text("#moment"))
        self.assertRegex(self.browser.text("#not-well"), "^runtime-7 ill: NoHeartbeat, since ")
        for words in ("ill\n1 runtime", "events accepted in this minute\n101 events", "reconciles in this minute\n107 reconciles", "roll-out watcher\nPaused: CanaryFailed"):
            self.assertIn(words, self.browser.text("#then-facts"))
        self.assertIsNone(self.browser.run("return document.querySelector('#stages').offsetParent"), "the present is not beside it")
        # A reload shows the same, and so does the link of a runtime of then.
        self.browser.wait(f"location.hash === '#/?at={last - 3600}'", "the address names it")
        self.browser.run("location.reload()")
        self.browser.wait("document.querySelector('#moment')?.innerText.endsWith(': outage')", "after a reload")
        self.browser.wait("document.querySelector('#not-well a')", "and the runtimes of then")
        self.browser.click("#not-well a")
        self.browser.wait(f"location.hash === '#/runtime/runtime-7?at={last - 3600}'", "its link names the minute")
        self.browser.wait("document.querySelector('.transitions .held')", "its transitions are shown")
        self.assertRegex(self.browser.text(".transitions .held"), r"ill: NoHeartbeat \(so it was at ")
        self.browser.press(Keys.ESCAPE)
        # What nobody has seen has no number; the keyboard moves the slider.
        self.browser.run(choose, last - 1500)
        self.browser.wait("document.querySelector('#moment').innerText.endsWith('no leader has seen this minute')", "a gap is one")
        self.assertIn("ill\n–", self.browser.text("#then-facts"))
        self.browser.run(choose, last - 3660)
        self.assertTrue(self.browser.text("#moment").endswith(": well, but for 1 runtime"), self.browser.text("#moment"))
        self.browser.run("document.querySelector('#at').focus()")
        self.browser.press(Keys.ARROW_RIGHT)
        self.browser.wait("document.querySelector('#moment').innerText.endsWith(': outage')", "a minute on")
        self.browser.click("#present")
        self.browser.wait("location.hash === '#/' && document.querySelector('#stages').offsetParent", "back to the present")
        self.check_quiet()

    def test_details_show_the_way_of_a_runtime_and_a_command_for_the_next_step(self):
        server, _ = self.serve_history([row_of(1, kyma="a")])
        self.open(f"{server.address}#/runtime/a")
        self.address = server.address
        self.browser.wait("document.querySelector('.way')", "the details are read")
        self.assertEqual(self.browser.texts(".way li"), ["✓ API server\n–", "✓ Webhook\n12 ms on average to the listener, by its own clock", "■ Gateway\n–",
                                                         "○ Listener\n–", "○ Reconcile\n–"])
        self.assertEqual(self.browser.text("#details .step code"), "runtime-watcher doctor --runtime a")
        self.assertIn("see the gateway", self.browser.text("#details .step"))
        self.browser.run("window.copied = []; Object.defineProperty(navigator, 'clipboard', {value: {writeText: (text) => copied.push(text)}})")
        self.browser.click("#details .step button")
        self.browser.wait("copied[0] === 'runtime-watcher doctor --runtime a'", "the command is copied")
        self.assertEqual(self.browser.text("#details .step button"), "Copied")
        self.assertEqual(self.browser.run("return quoted(arguments[0])", "a';b"), r"'a'\'';b'", "a name is no command")
        self.check_quiet()

    def test_details_show_the_latest_events_of_a_runtime_as_text(self):
        server = self.serve([row_of(1)])
        at = int(time.time()) // 60 * 60
        evil = "<img src=x onerror=alert(1)>"
        server.details = {"events": [
            {"at": at, "type": "Warning", "reason": "WatcherSilent", "message": evil, "about": "Kyma", "count": 3},
            {"at": at - 60, "type": "Normal", "reason": "BootstrapperInstalled", "message": "m", "about": "RuntimeBootstrapper"}]}
        self.browser.run("location.hash = '#/runtime/runtime-1'")
        self.browser.wait("document.querySelector('.events')", "the details are read")
        first, second = self.browser.texts(".events li")
        self.assertTrue(first.endswith(f": ▲ WatcherSilent (3 times): {evil}"), first)
        self.assertTrue(second.endswith(": BootstrapperInstalled of the RuntimeBootstrapper: m"), second)
        self.assertNotIn("[object Object]", self.browser.text("#details-body"))
        server.details = {}
        self.browser.press(Keys.ESCAPE)
        self.browser.wait("!document.querySelector('#details').open && !location.hash.includes('runtime-1')", "they are closed")
        self.browser.run("location.hash = '#/runtime/runtime-1'")
        self.browser.wait("document.querySelector('#details-body dl') && !document.querySelector('.events')", "without events there is no heading")
        self.check_quiet()

    def test_details_have_words(self):
        server = self.serve([row_of(1)])
        server.details = {"runtimeId": "id-1", "authorities": 2, "heartbeat": {"state": "live", "abandonedEvents": 3, "deliveryMilliseconds": 1200},
                          "notConverged": {"fault": "tenant"}}
        self.browser.run("location.hash = '#/runtime/runtime-1'")
        self.browser.wait("document.querySelector('#details dl')", "the details are read")
        text = self.browser.text("#details-body")
        for words in ("runtime id\nid-1", "CAs that it trusts\n2 CAs", "Heartbeats", "state\nlive", "abandoned events\n3 events", "mean time to delivery\n1 s", "whose fault\nthe runtime's"):
            self.assertIn(words, text)
        self.check_quiet()

    def test_columns_sort_both_ways(self):
        self.serve([row_of(i) for i in range(1, 101)])
        self.assertEqual(self.names()[8:11], ["runtime-9", "runtime-10", "runtime-11"], "numbers count")
        lag = "#heads [role=columnheader]:nth-child(6)"
        self.browser.click(f"{lag} button")
        self.assertEqual(self.browser.run(f"return document.querySelector('{lag}').getAttribute('aria-sort')"), "ascending")
        self.assertEqual(self.names()[0], "runtime-90")
        self.browser.press(Keys.ENTER)
        self.assertEqual(self.browser.run(f"return document.querySelector('{lag}').getAttribute('aria-sort')"), "descending")
        self.assertEqual(self.names()[0], "runtime-89")
        self.assertEqual(len(self.browser.run("return [...document.querySelectorAll('[aria-sort]:not([aria-sort=none])')]")), 1)
        self.check_quiet()

    def test_five_thousand_runtimes_stay_smooth(self):
        rows = [row_of(i) for i in range(1, 5001)]
        server = self.serve(rows)
        self.browser.wait("visible.length === 5000", "all are there")
        self.assertEqual(self.browser.run("return document.querySelector('#table').getAttribute('aria-rowcount')"), "5001")
        self.assertLess(self.browser.run(f"return {ROWS}.length"), 200, "only what is seen is in the document")
        self.browser.run("document.querySelector('#table').focus()")
        self.browser.press(Keys.END)
        self.browser.wait(f"{CELLS}.some((cells) => cells[0] === 'runtime-5000')", "End shows the last row")
        self.assertEqual(self.browser.run("return document.getElementById(document.querySelector('#table')"
                                          ".getAttribute('aria-activedescendant')).getAttribute('aria-rowindex')"), "5001")
        # 250 rows a second, while the table scrolls: the frames between must come.
        self.browser.run("""
          window.gaps = []; let last = performance.now(); let step = 0;
          const frame = (time) => { gaps.push(time - last); last = time;
            document.querySelector('#table').scrollTop = (++step * 97) % 130000; requestAnimationFrame(frame); };
          requestAnimationFrame(frame);""")
        for second in range(6):
            changed = [row_of(i, lag=500 + second) for i in range(1 + second * 250, 251 + second * 250)]
            rows[second * 250:(second + 1) * 250] = changed
            server.send("update", {**state_of(rows), "rows": changed, "gone": []})
            self.browser.wait("rows.get(arguments[0]).lag === arguments[1]", "the update is taken", changed[0]["kyma"], 500 + second)
            self.browser.wait("gaps.length > arguments[0]", "frames come", 30 * (second + 1))
        gaps = sorted(self.browser.run("return gaps"))
        self.note(f"{len(gaps)} frames, median {gaps[len(gaps) // 2]:.0f} ms, longest {gaps[-1]:.0f} ms")
        self.assertLess(gaps[len(gaps) // 2], 100)
        self.assertLess(sum(gap > 250 for gap in gaps), len(gaps) / 20, "frames are rarely late")
        server.send("update", {**state_of(rows[:-1]), "rows": [], "gone": ["runtime-5000"]})
        self.browser.wait("visible.length === 4999", "a runtime that is gone goes")
        self.check_quiet()

    def test_texts_of_runtimes_are_shown_as_text(self):
        evil = "<img src=x onerror=window.owned=1><script>window.owned=1</script>"
        rows = [row_of(1, kyma="a", id=evil, reason=evil, message=evil, version=evil, content=evil, probeReason=evil,
                       heartbeat=evil, state=evil)]
        self.serve(rows, conditions=[{"type": evil, "reason": evil, "message": evil}], states={evil: 1}, heartbeats={evil: 1},
                   rotation={"phase": evil, "missing": 1, "waiting": evil}, notReady=[evil],
                   rollouts=[{"component": evil, "phase": evil, "reason": evil, "message": evil, "counts": {evil: 1}}],
                   warnings=[{"line": {"time": evil, "level": evil, "msg": evil, evil: evil}, "times": 2, "names": [evil]}])
        self.browser.wait(f"{CELLS}[0]?.at(-1).includes('<script>')", "it is text")
        self.assertEqual(self.browser.run("return [window.owned ?? null, document.querySelectorAll('main img, main script').length]"), [None, 0])
        self.check_quiet()

    def test_full_state_replaces_all_rows(self):
        server = self.serve([row_of(i) for i in range(1, 6)])
        self.assertEqual(len(self.names()), 5)
        server.send("full", {**state_of([]), "rows": []})
        self.browser.wait("document.querySelectorAll('#rows .row').length === 0", "no row is left")
        self.assertEqual(self.browser.text("#shown"), "0 runtimes")
        self.assertEqual(self.browser.text("#headline"), "✓ well: 0 of 0 runtimes are ill")

    def test_unknown_states_are_not_well(self):
        rows = [row_of(i, state="unknown", heartbeat="unknown", condition="unknown") for i in range(1, 6)]
        unknown = {"level": "unknown", "message": "unknown: 5 are not looked at yet", "unknown": 5, "causes": []}
        server = self.serve(rows, states={"unknown": 5}, heartbeats={"unknown": 5}, verdict=unknown)
        self.assertEqual(self.browser.text("#headline"), "■ unknown: 5 are not looked at yet")
        self.assertEqual(self.browser.texts("#stages .level")[0], "○ not reported")
        unknown["message"] = "unknown: no leader: this replica does not lead"
        server.send("update", {**state_of(rows, verdict=unknown), "rows": [], "gone": []})
        self.browser.wait("document.querySelector('#headline').innerText === arguments[0]", "it says so", f"■ {unknown['message']}")

    def test_landscape_that_is_well_with_ill_runtimes_is_amber_and_names_them(self):
        rows = [row_of(1, condition="ill", reason="EventsWait"), row_of(2)]
        cause = {"reason": "EventsWait", "count": 1, "runtimes": ["runtime-1"], "next": "see it", "message": "klm does not accept them"}
        verdict = {"level": "well", "message": "well: 1 of 2 runtimes are ill (50 %): runtime-1", "ill": 1, "causes": [cause]}
        server = self.serve(rows, verdict=verdict)
        self.assertEqual(self.browser.text("#headline"), f"▲ {verdict['message']}")
        self.assertEqual(self.browser.run("return document.querySelector('#verdict').className"), "card warning")
        self.assertEqual(self.browser.texts("#stages .level")[0], "▲ 1 runtime ill")
        self.assertTrue(self.browser.texts("#causes li")[0].startswith("1 runtime: EventsWait (runtime-1): klm does not accept them"))
        server.send("update", {**state_of(rows, verdict={**verdict, "ill": 0, "causes": []}), "rows": [], "gone": []})
        self.browser.wait("document.querySelector('#verdict').className === 'card ok'", "it is green without any")

    def test_warnings_of_a_cause_are_one_row(self):
        line = {"time": "2026-11-23T18:32:42.814Z", "level": "warning", "namespace": "kcp-system", "name": "runtime-1000"}
        others = [{"line": {**line, "level": "error", "msg": f"cause {i}"}, "times": 1, "names": ["runtime-3"]} for i in range(1, 7)]
        self.serve([row_of(1)], warnings=[*others, {"line": {**line, "msg": "not ready", "reason": "NoEndpoints", "suppressed": 2}, "times": 1000,
                                                    "names": ["runtime-998", "runtime-999", "runtime-1000"]}])
        shown = self.browser.texts("#warnings li")
        self.assertEqual(shown[0], "2026-11-23T18:32:42Z 1,000 times: not ready namespace=kcp-system reason=NoEndpoints "
                                   "name=runtime-1000, runtime-999, runtime-998, …")
        self.assertEqual(shown[1], "2026-11-23T18:32:42Z cause 6 namespace=kcp-system name=runtime-3")
        self.assertEqual(len(shown), 5)
        self.assertEqual(self.browser.text("#earlier"), "2 earlier causes")
        self.browser.click("#earlier summary")
        self.assertEqual(len(self.browser.texts("#earlier li")), 2)
        self.check_quiet()

    def test_rows_are_as_high_as_their_texts(self):
        rows = [row_of(i, condition="ill", reason="NoHeartbeat", message="see the pod " * (i % 25)) for i in range(1, 1001)]
        self.serve(rows)
        self.browser.run("document.querySelector('#table').focus()")
        seen = """const table = document.querySelector('#table').getBoundingClientRect(), row = document.querySelector('.row.active');
          const {top, bottom} = row.getBoundingClientRect();
          return [row.firstChild.innerText, top >= table.top && bottom <= table.bottom + 1]"""
        for key, name in ((Keys.HOME, "runtime-1"), (Keys.END, "runtime-1000"), (Keys.ARROW_UP, "runtime-999"), (Keys.HOME, "runtime-1"),
                          (Keys.ARROW_DOWN, "runtime-2")):
            self.browser.press(key)
            self.assertEqual(self.browser.run(seen), [name, True])
        self.browser.run("document.querySelector('#table').scrollTop = 9000")
        self.browser.wait(f"{ROWS}.every((row, i, all) => !i || row.getBoundingClientRect().top >= all[i - 1].getBoundingClientRect().bottom - 1)",
                          "no row is over another")
        self.browser.wait("document.elementFromPoint(600, document.querySelector('#table').getBoundingClientRect().bottom - 60).closest('#rows .row')",
                          "there is a row at the lower end")
        self.check_quiet()

    def test_page_of_a_replica_that_no_longer_leads_names_the_leader(self):
        server = self.serve([row_of(1)])
        server.leader = "this replica does not lead, pod manager-2 does: kubectl -n kcp-system port-forward pod/manager-2 8080"
        server.fill(True)
        self.browser.wait("document.querySelector('#connection').innerText.includes(arguments[0])", "it says who leads", server.leader)

    def test_verdict_without_a_recent_word_of_the_leader_is_unknown(self):
        self.serve([row_of(1)])
        self.assertEqual(self.browser.text("#headline"), "✓ well: 0 of 1 runtimes are ill")
        self.browser.run("const real = Date.now; Date.now = () => real() + 61000; showVerdict()")
        self.assertEqual(self.browser.text("#headline"), "■ unknown: no leader: its last word is 61 s old")
        self.assertEqual(self.browser.run("return document.title"), "(unknown) Runtime Watcher")

    def test_hidden_page_takes_no_place_of_a_viewer(self):
        self.serve([row_of(1)])
        self.browser.run("Object.defineProperty(document, 'hidden', {value: true, configurable: true}); onVisibility()")
        self.assertEqual(self.browser.run("return source.readyState"), 2)
        self.browser.run("Object.defineProperty(document, 'hidden', {value: false}); onVisibility()")
        self.browser.wait("source.readyState === 1", "it is connected again")

    def test_members_that_are_omitted_are_unknown(self):
        full = state_of([row_of(1)])
        optional = [name for name in full if name not in ("now", "version", "total", "states")]
        for omitted in [*([name] for name in optional), optional]:
            with self.subTest(omitted=omitted):
                self.browser.open("about:blank")
                self.browser.origins()
                server = self.start(MadeUp({**{k: v for k, v in full.items() if k not in omitted}, "rows": [row_of(1), {"kyma": "b"}]}))
                self.open(server.address)
                self.browser.wait(f"{CELLS}.length === 2", "the table is shown")
                self.assertNotRegex(self.browser.text("body"), r"NaN|undefined|Invalid")
                if "heartbeats" in omitted:
                    self.assertEqual(self.browser.texts("#stages .level")[0], "○ not reported")
                self.check_quiet()
        self.assertEqual(set(self.browser.texts("#stages .level")), {"○ not reported"})
        self.assertEqual({text.split()[0] for text in self.browser.texts("#stages .value")}, {"–"})

    def test_unusual_values_are_readable(self):
        past = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 60))
        self.serve([row_of(1)], channel={"size": 0, "capacity": 0}, warnings=[{"line": {"level": "warning", "msg": "no time"}}],
                   rollouts=[{"component": "watcher"}], certificates={"earliest": 1000, "earliestRuntime": "runtime-1", "expiring": 1},
                   rotation={"phase": "distributing", "missing": 1, "deadline": past, "next": past})
        self.assertNotRegex(self.browser.text("body"), r"NaN|undefined|Invalid|expired left|in expired")
        self.assertIn("expired (runtime-1)", self.browser.text("#rotation"))
        self.check_quiet()

    def test_page_connects_again_when_a_place_for_a_viewer_is_free(self):
        server = self.serve([row_of(1)])
        self.browser.run("""window.announced = [];
          new MutationObserver(() => announced.push(document.querySelector('#announced').innerText))
            .observe(document.querySelector('#announced'), {childList: true, characterData: true, subtree: true});""")
        server.fill(True)
        self.browser.wait("/serves no more viewers; last update [2-9] s ago/.test(document.querySelector('#connection').innerText)",
                          "the reason is shown, and the age of the state")
        self.assertTrue(self.browser.run("return document.body.classList.contains('stale')"))
        server.fill(False)
        self.browser.wait("document.querySelector('#connection').innerText === '● live'", "it connects again")
        self.assertFalse(self.browser.run("return document.body.classList.contains('stale')"))
        announced = self.browser.run("return announced")
        self.assertEqual(len(announced), len(set(announced)), "announced at a change, not each second")
        self.assertEqual(announced[-1], "live")
        self.assertFalse(self.browser.run("return document.querySelector('#connection').closest('[role=status], [aria-live]') !== null"))

    def test_details_are_those_of_the_runtime_in_the_title(self):
        server = self.serve([row_of(1), row_of(2)])
        server.held["runtime-1"] = threading.Event()
        self.browser.run("""const read = window.fetch; window.ended = 0;
          window.fetch = (...all) => read(...all).finally(() => setTimeout(() => ++ended, 50));""")
        self.browser.run("document.querySelector('#table').focus()")
        self.browser.press(Keys.HOME, Keys.ENTER, Keys.ESCAPE, Keys.ARROW_DOWN, Keys.ENTER)
        self.browser.wait("ended === 1", "the details of the second are read")
        server.held["runtime-1"].set()
        self.browser.wait("ended === 2", "those of the first come late")
        self.assertEqual(self.browser.text("#details-title"), "runtime-2")
        self.assertIn("runtime-2", self.browser.text("#details-body"))
        self.check_quiet()

    def test_states_catch_the_eye(self):
        rows = [row_of(i) for i in range(1, 21)]
        self.serve(rows, notReady=["not in step with KCP: kymas"],
                   verdict={"level": "degraded", "message": "degraded: 20 of 20 runtimes are well", "causes": [
                       {"reason": "RolloutPaused", "message": "the roll-out of watcher is paused (CanaryFailed): runtime-3 crashes", "next": "resume"}]},
                   events={**state_of(rows)["events"], "oldestMilliseconds": 90000, "holding": 3},
                   channel={"taken": 9, "size": 4000, "capacity": 4096},
                   rotation={"phase": "distributing", "missing": 2, "waiting": "2 runtimes", "deadline": "2031-01-01T00:00:00Z"},
                   rollouts=[{"component": "watcher", "phase": "Paused", "reason": "CanaryFailed", "message": "runtime-3 crashes",
                              "counts": {"total": 20, "ready": 1, "failed": 1}}])
        self.assertEqual(self.browser.texts("#stages .level")[1], "■ events wait")
        self.assertEqual(self.browser.texts("#stages .level")[4], "■ full")
        self.assertIn("the roll-out of watcher is paused (CanaryFailed): runtime-3 crashes", self.browser.text("#causes"))
        self.assertIn("not in step", self.browser.text("#notices"))
        self.assertIn("waiting for runtimes", self.browser.text("#phases [aria-current]"))
        self.check_quiet()


class PolicyTest(TestCase):
    def test_page_needs_nothing_but_itself(self):
        text = PAGE.read_text()
        self.assertEqual((text.count("<script"), text.count("<style")), (1, 1))
        self.assertEqual(re.findall(r"https?://(?!www\.w3\.org/2000/svg)[^\s\"']+", text), [])
        self.assertEqual(re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b| style=| on\w+=\"", text), [])


if __name__ == "__main__":
    main()
