#!/usr/bin/env python3
"""Private words stay out of names, messages and the README: the field has its own word for each. One word is one thing.

Reads all C++ sources of the product without their comments, and README.md; names each place where a word of the list is
part of an identifier, a message or a help text, each type whose name another type has that a source sees with it (public headers:
may see with it), each question word or pronoun that is a name in a header, and each test whose name does not begin with its
subject. Ends with 1 if there is one, or if the sources use such names more often than they did.
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("core", "tls", "k8s", "reactors", "bench")

# The word, and what is said instead.
WORDS = {
    "somebody": "the client, the controller, ...", "nobody": "no client, ...", "whoever": "the caller, ...",
    "desk": "worker", "lane": "destination, queue", "shipment": "batch", "settlement": "batch_result",
    "housekeeping": "garbage_collector", "chore": "gc_task", "webhook_line": "webhook_client",
    "misfit": "type_error", "complaint": "error", "obstacle": "error", "trouble": "error",
    "sign_of_life": "probe", "first_answer": "probe_timeout", "situation": "status_input",
    "known_set": "revision", "gathered_set": "resolved_set", "a_little_longer": "with_jitter",
    "look_again": "recheck_at", "hurry": "abort_term", "doubt": "mark_suspect", "reckon": "plan",
    "keeper": "tracker", "sick": "unhealthy", "world": "state", "board": "tracker", "places": "permits, index",
    "dialect": "issuer_kind", "pace": "backoff, delay", "story": "context, trace",
}


def without_comments(source):
    """The source with comments blanked, line by line; strings stay."""
    token = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.S)
    return token.sub(lambda m: m[0] if m[0][0] == '"' else re.sub(r"[^\n]", " ", m[0]), source)


def found_in(text):
    for number, line in enumerate(text.split("\n"), 1):
        for word in WORDS:
            # A part of an identifier is between underscores; an s may follow.
            if re.search(rf"(?<![A-Za-z]){word}s?(?![A-Za-z])", line, re.I):
                yield number, word, line.strip()


# Names of public types that mean the same thing in each of their namespaces: what a floor adds to the one below it.
ONE_MEANING = {
    "client": "of HTTP, of the Kubernetes API", "client_options": "of HTTP, of TLS, of the Kubernetes API",
    "client_environment": "of HTTP, of the Kubernetes API", "server": "of HTTP, of the Kubernetes API",
    "server_options": "of HTTP, of TLS, of the Kubernetes API", "server_environment": "of HTTP, of the Kubernetes API",
    "stream": "of bytes, and the one over TLS", "failure": "an error with its text", "result": "a value or a failure",
    "wall_time": "a time of the system's clock", "service_resolver": "of the API server and of the gateway",
}
# A header that no program sees beside others of its name: the simulators, and the API server in memory.
APART = ("k8s/devserver/", "reactors/dev/")
# Uses of the most frequent vague names in all sources of core, tls, k8s and reactors: no more than there are.
VAGUE = ("one", "what", "why", "how", "with_", "in_")
VAGUE_LIMIT = 72
QUESTIONS = {"who", "whom", "whose", "what", "which", "when", "where", "why", "how"}
PRONOUNS = {"one", "ones", "some", "it", "them", "they", "mine", "ours", "theirs", "others", "both", "another", "each"}
PREPOSITIONS = {"with_", "in_", "from_", "to_", "of_", "by_", "for_", "on_", "at_"}


def public_headers():
    text = (ROOT / "deploy" / "public_headers.cmake").read_text()
    return set(re.findall(r"\b((?:core|tls|k8s|reactors)/[\w/]+\.hpp)", text))


def without_strings(source):
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', without_comments(source))


def types_of(source):
    """Namespace and name of each type that is a member of a named namespace; details of headers are free."""
    token = re.compile(r"\bnamespace\s+([\w:]*)\s*\{|\benum\s+(?:class\s+)?(\w+)[^;{]*\{|"
                       r"\b(?:class|struct)\s+(?:RW_\w+ |\[\[[^\]]*\]\] )?(\w+)(?:\s+final)?\s*(?::[^;{}()]*)?\{|\busing\s+(\w+)\s*=|[{}]")
    nesting = []  # namespaces, and None for all else
    for found in token.finditer(without_strings(source)):
        if found[0] == "}":
            del nesting[-1:]
        elif found[0] == "{":
            nesting.append(None)
        elif found[1] is not None:
            nesting.append(found[1])
        else:
            inside = "::".join(each or "" for each in nesting)
            if inside.startswith("rw") and None not in nesting and not inside.endswith("_detail"):
                yield inside, found[2] or found[3] or found[4]
            if found[4] is None:
                nesting.append(None)


def homonyms(sources, public):
    """Types with the name of a public type of another namespace. `sources`: the text of each header by its path."""
    places = collections.defaultdict(set)
    for path, source in sources.items():
        for inside, name in types_of(source):
            places[name].add((inside, path))
    for name, where in sorted(places.items()):
        if name in ONE_MEANING or not any(path in public for _, path in where):
            continue
        seen = {(inside, path) for inside, path in where if path in public or not path.startswith(APART)}
        if len({inside for inside, _ in seen}) > 1:
            yield f"{name}: " + ", ".join(f"{inside} ({path})" for inside, path in sorted(seen))


def included(path, source, headers):
    """Paths of the headers that a source includes itself."""
    for angled, quoted in re.findall(r'#include (?:[<"]rw/([\w/]+\.hpp)|"([\w/]+\.hpp)")', source):
        yield from (found for found in (angled, quoted, str(pathlib.PurePosixPath(path).parent / quoted)) if found in headers)


def chain(path, headers, known):
    """The header, and all that it includes."""
    if path not in known:
        known[path] = {path}
        known[path] = {path}.union(*(chain(each, headers, known) for each in included(path, headers[path], headers)))
    return known[path]


def homonyms_of_chains(sources, headers):
    """Types of one name in two namespaces that some source sees both of. `sources`, `headers`: texts by path."""
    known, found = {}, collections.defaultdict(set)
    types = {path: set(types_of(source)) for path, source in headers.items()}
    for path, source in sources.items():
        seen = collections.defaultdict(set)
        for header in set().union(*(chain(each, headers, known) for each in included(path, source, headers))) & types.keys():
            for inside, name in types[header]:
                seen[name].add((inside, header))
        for name, where in seen.items():
            if name not in ONE_MEANING and len({inside for inside, _ in where}) > 1:
                found[name] |= where
    for name, where in sorted(found.items()):
        yield f"{name}: " + ", ".join(f"{inside} ({path})" for inside, path in sorted(where))


def uses_of(names, source):
    return len(re.findall(rf"(?<!\w)(?:{'|'.join(names)})(?!\w)", without_strings(source)))


def vague_names(source):
    """Line and name of each identifier that is a question word, a pronoun, or a member named by a preposition."""
    for number, line in enumerate(without_strings(source).split("\n"), 1):
        if line.lstrip().startswith("#"):
            continue
        for name in re.findall(r"(?<![\w.:>])[a-z]\w*\b(?!\s*::)", line):
            if name.rstrip("_") in QUESTIONS | PRONOUNS or name in PREPOSITIONS:
                yield number, name


def vague_tests(source):
    """Names of tests that begin with an article or a pronoun. JSON schema's anyOf, oneOf and allOf are subjects."""
    cases = re.findall(r"(?:_TEST_CASE|RW_COROUTINE_TEST)\(\s*([a-z]\w*)|^ +def test_(\w+)\(", source, flags=re.MULTILINE)
    for name in (cpp or python for cpp, python in cases):
        if re.match(r"(an?|the|it|its|one|what|who|whoever|which|whose|when|where|why|how|this|that|these|those|they|some|any|all|each|every|"
                    r"both|none|nothing|nobody|somebody|everything|another|others?)_(?!of_needs_)", name):
            yield name


def check_of_types():
    """What the functions above must find, and must not."""
    first, second = "namespace rw::a { struct gate { struct kind {}; }; }", "namespace rw::b { enum class gate { x }; using kind = int; }"
    assert list(types_of(first)) == [("rw::a", "gate")]
    assert len(list(homonyms({"a.hpp": first, "b.hpp": second}, {"a.hpp"}))) == 1
    assert not list(homonyms({"a.hpp": first, "b.hpp": second}, set()))
    headers = {"core/a.hpp": first, "core/b.hpp": '#include "rw/core/a.hpp"\n' + second, "core/c.hpp": "namespace rw::c { class gate {}; }"}
    assert len(list(homonyms_of_chains({"core/b.cpp": '#include "rw/core/b.hpp"'}, headers))) == 1
    assert not list(homonyms_of_chains({"core/c.cpp": '#include "rw/core/a.hpp"', "core/d.cpp": '#include "rw/core/c.hpp"'}, headers))
    assert uses_of(VAGUE, "int one, on, one_of; // one\nx->what();") == 2
    assert [name for _, name in vague_names("int f(int what); // why\nint in_; x.one = std::one;")] == ["what", "in_"]
    assert list(vague_tests("BOOST_AUTO_TEST_CASE(a_key_waits) {\n    def test_it_waits(self):\n  BOOST_FIXTURE_TEST_CASE(\n one_of_needs_one, "
                            "bench)")) == ["a_key_waits", "it_waits"]


def main():
    check_of_types()
    sources = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.?pp"))
    count = 0
    for path in [*sources, ROOT / "README.md"]:
        text = path.read_text()
        for number, word, line in found_in(text if path.suffix == ".md" else without_comments(text)):
            count += 1
            print(f'{path.relative_to(ROOT)}:{number}: "{word}" ({WORDS[word]}): {line}')
    print(f"{count} private words in names, messages and README.md")
    public = public_headers()
    headers = {str(path.relative_to(ROOT)): path.read_text() for path in sources if path.suffix == ".hpp"}
    double = list(homonyms(headers, public))
    double += homonyms_of_chains({str(path.relative_to(ROOT)): path.read_text() for path in sources}, headers)
    vague = [f"{path}:{number}: {name}" for path in sorted(headers)
             for number, name in vague_names(headers[path])]
    uses = sum(uses_of(VAGUE, path.read_text()) for path in sources if path.is_relative_to(ROOT / "bench") is False)
    print(*double, *vague, sep="\n", end="\n" if double or vague else "")
    tests = sorted(path for path in (ROOT / "tests").rglob("*") if path.suffix in (".cpp", ".py") and path != pathlib.Path(__file__).resolve())
    vague_cases = [f"{path.relative_to(ROOT)}: {name}" for path in tests for name in vague_tests(path.read_text())]
    print(*vague_cases, sep="\n", end="\n" if vague_cases else "")
    print(f"{len(vague_cases)} tests do not begin with their subject")
    print(f"{len(double)} names of types that are seen together mean two things, {len(vague)} names in headers are question words or pronouns")
    print(f"{', '.join(VAGUE)}: {uses} uses, at most {VAGUE_LIMIT}")
    return 1 if count or double or vague or vague_cases or uses > VAGUE_LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
