#!/usr/bin/env python3
"""Private words stay out of names, messages and the README: the field has its own word for each.

Reads all C++ sources of the product without their comments, and README.md; names each place where a word of the list is
part of an identifier, a message or a help text. Ends with 1 if there is one.
"""

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


def main():
    sources = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.?pp"))
    count = 0
    for path in [*sources, ROOT / "README.md"]:
        text = path.read_text()
        for number, word, line in found_in(text if path.suffix == ".md" else without_comments(text)):
            count += 1
            print(f'{path.relative_to(ROOT)}:{number}: "{word}" ({WORDS[word]}): {line}')
    print(f"{count} private words in names, messages and README.md")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
