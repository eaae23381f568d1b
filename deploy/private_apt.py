#!/usr/bin/env python3
"""Makes an apt configuration with lists, cache and state of its own, so that packages are downloaded without root and without a change
to this machine's apt and dpkg: nothing is installed for it.

    export APT_CONFIG="$(deploy/private_apt.py FOLDER [--suite SUITE] [--architecture ARCHITECTURE] [--source])"

FOLDER is made. The mirrors and keys are those of the machine's entries of its own release of Debian.

    --suite SUITE     another release of Debian than 12 (bookworm)
    --architecture A  packages of this architecture (default: the machine's)
    --source          source packages, too
"""

import argparse
import getpass
import glob
import pathlib
import re
import sys

IMAGE = "bookworm"  # what the image is made of


def codename():
    release = pathlib.Path("/etc/os-release")
    found = re.search(r"(?m)^VERSION_CODENAME=\"?(\w+)", release.read_text("utf-8") if release.exists() else "")
    return found[1] if found else IMAGE


CODENAME = codename()


def ours(suites, components):
    return "main" in components and any(suite.split("/")[0].split("-")[0] == CODENAME for suite in suites)


def entries(types):
    """The machine's entries in either form of apt's files, as texts: stanzas, and lines."""
    stanzas, lines = [], []
    for name in sorted(glob.glob("/etc/apt/sources.list.d/*.sources")):
        text = re.sub(r"(?m)^#.*\n", "", pathlib.Path(name).read_text("utf-8"))
        for stanza in re.split(r"\n\s*\n", text):
            fields = {m[1].lower(): m[2].split() for m in re.finditer(r"(?m)^([\w-]+):[ \t]*(.*(?:\n[ \t].*)*)", stanza)}
            if (ours(fields.get("suites", []), fields.get("components", []))
                    and fields.get("enabled", ["yes"])[0].lower() not in ("no", "false", "0")):
                stanza = re.sub(r"(?mi)^(types|architectures):.*\n?", "", stanza.strip() + "\n")
                stanzas.append(f"Types: {' '.join(types)}\n{stanza}")
    for name in ["/etc/apt/sources.list", *sorted(glob.glob("/etc/apt/sources.list.d/*.list"))]:
        path = pathlib.Path(name)
        for line in path.read_text("utf-8").splitlines() if path.exists() else []:
            m = re.match(r"\s*deb\s+(\[[^]]*\]\s+)?(\S+\s+(\S+)\s+([^#]+))", line)
            if m and ours([m[3]], m[4].split()):
                options = re.sub(r"\barch[+-]?=[^]\s]*\s*", "", m[1] or "")
                lines += [f"{kind} {options}{m[2].strip()}" for kind in types]
    return stanzas, list(dict.fromkeys(lines))


def main():
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__.strip())
        return
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--suite", default=IMAGE)
    parser.add_argument("--architecture")
    parser.add_argument("--source", action="store_true")
    asked = parser.parse_args()
    folder = asked.folder.resolve()
    for name in ("sources.d", "state", "lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    stanzas, lines = (re.sub(rf"\b{CODENAME}\b", asked.suite, "\n".join(found))
                      for found in entries(["deb", "deb-src"] if asked.source else ["deb"]))
    if not stanzas and not lines:
        sys.exit(f"private_apt.py: no apt entry for {CODENAME} main found below /etc/apt")
    (folder / "sources.d" / "debian.sources").write_text(stanzas + "\n")
    (folder / "sources.d" / "debian.list").write_text(lines + "\n")
    (folder / "status").write_text("")
    architecture = f'APT::Architecture "{asked.architecture}";\nAPT::Architectures {{ "{asked.architecture}"; }};\n' if asked.architecture else ""
    (folder / "apt.conf").write_text(f"""{architecture}Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "{folder}/sources.d";
Dir::State "{folder}/state";
Dir::State::lists "{folder}/lists";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
APT::Sandbox::User "{getpass.getuser()}";
APT::Install-Recommends "false";
Acquire::Languages "none";
Acquire::Retries "5";
Acquire::http::Timeout "60";
#clear APT::Update::Post-Invoke-Success;
""")
    print(folder / "apt.conf")


if __name__ == "__main__":
    main()
