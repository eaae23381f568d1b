#!/usr/bin/env python3
"""Holds the tree against README.md's rules: the root's entries are known, no comment is broken by the formatter, a coroutine takes
nothing that binds to a temporary, a metric's name ends as its type does, one place makes DOMs of foreign JSON, and what installed
headers include is installed. Prints each error; ends with 1 if there is one."""

import fnmatch
import pathlib
import re
import sys

from words import without_comments

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("core", "tls", "k8s", "reactors", "bench", "tests")
ENTRIES = {".ci", ".clang-format", ".clang-tidy", ".git", ".github", ".gitignore", ".reuse", "CHANGELOG.md", "CMakeLists.txt",
           "CMakePresets.json", "LICENSE", "LICENSES", "NOTICE", "README.md", "SECURITY.md", "bench", "core", "deploy", "k8s",
           "reactors", "tests", "tls"}


def unknown_entries(names, ignored):
    """Of the root: neither known nor in .gitignore."""
    patterns = [line.strip("/") for line in ignored.splitlines() if line and not line.startswith("#")]
    return sorted(name for name in names - ENTRIES if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns))


def broken_comments(source):
    """The numbers of lines that the formatter wrapped out of their list item: such a line is not indented, the item goes on below."""
    lines = source.split("\n")
    comments = [re.match(r"\s*//[/!]?(?P<indent> *)(?P<text>.*)", line) if re.match(r"\s*//", line) else None for line in lines]
    item = None  # the indent of the list item that the comment is in
    for number, comment in enumerate(comments):
        if not comment or not comment["text"]:
            item = None
            continue
        indent = len(comment["indent"])
        if comment["text"].startswith("- "):
            item = indent
        elif item is not None and indent <= item:
            after = comments[number + 1] if number + 1 < len(comments) else None
            if after and len(after["indent"]) > item and not after["text"].startswith("- "):
                yield number + 1
            item = None


def until_closed(text, start, pair):
    """The position after the bracket that closes the one before `start`."""
    depth = 1
    while depth and start < len(text):
        depth += (text[start] == pair[0]) - (text[start] == pair[1])
        start += 1
    return start


def dangling_parameters(source):
    """Of coroutines: name and parameters of types that bind to a temporary, which may be gone when the coroutine goes on."""
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', without_comments(source))
    for function in re.finditer(r"awaitable<[^;{}()]*?>\s+((?:\w+(?:<[^<>]*>)?::)*\w+)\(", text):
        end = until_closed(text, function.end(), "()")
        body = re.match(r"\s*(?:const)?\s*(?:noexcept)?\s*(?:override|final)?\s*\{", text[end:])
        if body and "co_" in text[end:until_closed(text, end + body.end(), "{}")]:
            parameters = re.sub(r"std::function<.*?\)>", "function", text[function.end():end - 1], flags=re.DOTALL)
            found = re.findall(r"const [^,()]*&|[^,()]*&&|std::string_view \w+|std::span<[^,()]*", parameters)
            if found:
                yield function[1], found


def conditional_awaits(source):
    """Of `? :`, && and ||: gcc 14 awaits such operands more often than the condition says."""
    return re.findall(r"(?:&&|\|\||\?|(?<!:):(?!:))\s*\(*co_await\b", re.sub(r"\bfor \([^;()]*:|\bcase [^;:?]*:|\bdefault:", " ", without_comments(source)))


def ill_named_metrics(source):
    """Counters end with _total, histograms with their unit. watcher_* belong to the existing system."""
    for kind, name in re.findall(r'make_(counter|histogram)\w*\([^",]*,\s*"(\w+)"', source):
        if not name.startswith("watcher_") and not name.endswith("_total" if kind == "counter" else ("_seconds", "_events")):
            yield name


def json_parsers(source):
    """Uses of Boost.JSON's parsers, whose cost is the text's author's choice."""
    text = without_comments(source)
    yield from re.findall(r"#include <(boost/json(?:/(?:parse|parser|stream_parser|basic_parser\w*|src))?\.hpp)>", text)
    yield from re.findall(r"json::((?:stream_|basic_)?parse(?:r|_into)?)\b(?!_)", text)
    yield from re.findall(r">>\s*(\w*(?:json|document)\w*)\s*;", text)


def may_parse_json(name):
    return name.parts[0] in ("bench", "tests") or name.parts[:2] == ("k8s", "devserver") or str(name) == "k8s/objects/read_json.cpp"


def absent_headers(listed, text_of):
    """Of those that are installed: headers that they include and that are not, with who includes them."""
    for name in sorted(listed):
        for included in re.findall(r'#include "rw/([\w/.]+)"', text_of(name)):
            if included not in listed:
                yield name, included


SAMPLES = (("/// - one that is long\n/// word\n///   and goes on\n", [2]), ("///   - nested, long\n///   word\n///     goes on\n", [2]),
           ("/// - one\n///   goes on\n/// - two\n///\n/// Text:\n///   - nested\n", []), ("/// - one\n/// Text:\n///   - two\n", []))


# The strings are literals at each call.
LITERALS = {"doctor_app::report", "doctor_app::report_by_settings", "kim::set_state"}


def main():
    errors = [f"the root has an entry that nobody expects: {name}" for name in unknown_entries(
        {path.name for path in ROOT.iterdir()}, (ROOT / ".gitignore").read_text())]
    errors += [f"{name} is missing at the root" for name in sorted(ENTRIES - {".git"}) if not (ROOT / name).exists()]
    if unknown_entries({"README.md", "build-asan", "rw-dev", "a.out"}, (ROOT / ".gitignore").read_text()) != ["a.out"]:
        errors.append("the check of the root's entries does not work")
    for sample, lines in SAMPLES:
        if list(broken_comments(sample)) != lines:
            errors.append(f"the check of comments does not work: {sample}")
    if [name for name, _ in dangling_parameters("awaitable<void> f(const x& y) { co_return; } awaitable<int> g(x& y) { co_return 1; }"
                                                "awaitable<int> h(const x& y) { return g(y); }")] != ["f"]:
        errors.append("the check of coroutines does not work")
    if len(conditional_awaits("x = a ? co_await b() : co_await c(); for (auto& y : co_await d()) co_await e(); case 1: co_await f();")) != 2:
        errors.append("the check of conditional awaits does not work")
    if list(ill_named_metrics('make_counter(registry, "rw_events", "")')) != ["rw_events"]:
        errors.append("the check of metrics does not work")
    if list(json_parsers("#include <boost/json/parse.hpp>\nauto a = json::parse(b); json::parse_options c; json::value d;")) != [
            "boost/json/parse.hpp", "parse"]:
        errors.append("the check of JSON parsers does not work")
    if list(absent_headers({"a.hpp"}, lambda _: '#include "rw/b.hpp"')) != [("a.hpp", "b.hpp")]:
        errors.append("the check of installed headers does not work")
    installed = set(re.findall(r"[\w/]+\.hpp", (ROOT / "deploy" / "public_headers.cmake").read_text()))
    errors += [f"{name} is installed and includes {included}, which deploy/public_headers.cmake does not list"
               for name, included in absent_headers(installed, lambda name: (ROOT / name).read_text())]
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.?pp")):
        source, name = path.read_text(), path.relative_to(ROOT)
        errors += [f"{name}:{number}: the formatter broke the comment" for number in broken_comments(source)]
        if not may_parse_json(name):
            errors += [f"{name} uses {parser}: foreign JSON is read by core::json_document, or by k8s::read_json"
                       for parser in json_parsers(source)]
        errors += [f"{name}: an operand is awaited conditionally: {found}" for found in conditional_awaits(source)]
        if name.parts[0] in ("bench", "tests"):
            continue
        errors += [f"{name}: {function} is a coroutine and takes {', '.join(found)}" for function, found in dangling_parameters(source)
                   if function not in LITERALS]
        errors += [f"{name}: the metric's name does not end as its type does: {metric}" for metric in ill_named_metrics(source)]
    print("\n".join(errors))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
