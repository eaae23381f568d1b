#!/usr/bin/env python3
"""Finds calls that Asio deprecates. BOOST_ASIO_NO_DEPRECATED would reject them, but must not be defined: a host that links the
libraries may call them. Prints each; ends with 1 if there is one, or if it finds none in a sample of them."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("core", "tls", "k8s", "reactors", "bench", "tests", "deploy")
DEPRECATED = re.compile("|".join((
    r"\bio_service\b", r"\bget_io_(service|context)\(", r"\bdeadline_timer\b", r"\bexpires_from_now\(",
    r"\bexpires_(at|after)\([^()]*(\([^()]*\)[^()]*)*,\s*(ec|error)\)", r"\btimer\w*(\.|->)cancel\(\w+\)",
    r"\b(context|io|ioc|io_context)\w*(\.|->)(run|run_one|poll|poll_one)\((ec|error|unused)\)",
    r"\b(context|io|ioc|io_context)\w*(\.|->)(post|dispatch|wrap)\(", r"\bstrand\w*(\.|->)wrap\(", r"\bio_context::(work|strand)\b",
    r"\b(address|address_v[46])::from_string\(", r"\bto_string\((ec|error)\)", r"\bis_class_[abc]\(", r"\bis_v4_(mapped|compatible)\(\)\.to",
    r"\baddress_v4::(broadcast|netmask)\(", r"\bresolver::(query|iterator)\b", r"\bnull_buffers\b", r"\bbuffer_cast<",
    r"\basio_handler_(invoke|allocate|deallocate|is_continuation)\b", r"\brfc2818_verification\b", r"\bmax_connections\b(?=\))",
    r"\bbasic_io_object\b", r"\bhandler_type<", r"\basync_result<[^>]*>::type\b")))
SAMPLE = ("io_service io;", "timer.expires_from_now(1s);", "timer.expires_at(now, ec);", "context.run(ec);", "io.post(f);",
          "asio::ip::address::from_string(text)", "tcp::resolver::query query(host);", "address.to_string(ec)",
          "asio::buffer_cast<char*>(b)", "timer->cancel(ec);")
# The test of what a host may call.
EXEMPT = {"tests/install/headers/tasks.cpp"}


def main():
    missed = [each for each in SAMPLE if not DEPRECATED.search(each)]
    found = [f"not recognised: {each}" for each in missed]
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.[ch]pp")):
            name = str(path.relative_to(ROOT))
            if name in EXEMPT:
                continue
            text = re.sub(r"//[^\n]*", "", path.read_text())
            for match in DEPRECATED.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{name}:{line}: deprecated by Asio: {match.group(0)}")
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
