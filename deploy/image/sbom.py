#!/usr/bin/env python3
"""Prints the software bill of materials (SPDX 2.3, JSON) of the image, and puts the licences of the packages into it, and their
versions in the form of dpkg (/var/lib/dpkg/status.d), which scanners read.

    sbom.py ROOT SYSROOT LIBRARY...

LIBRARY are paths of shared libraries in the Debian system SYSROOT, / for this machine; the packages that they come from are listed,
and those whose code is in the executable itself. What is not part of the image differs from one machine to the other, so nothing
else of SYSROOT is in the output."""

import datetime
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Header-only and static libraries, by their packages. Of several versions the newest is built with.
INSIDE = ("libboost1.*-dev", "libcli11-dev", "libnghttp2-dev")
# Debian's short names of licences, where SPDX has another one; compared in lower case.
SPDX = {"expat": "MIT", "apache-2": "Apache-2.0", "bsd-2-clause": "BSD-2-Clause", "bsd-3-clause": "BSD-3-Clause",
        "gpl-2+": "GPL-2.0-or-later", "gpl-2.0+": "GPL-2.0-or-later", "gpl-3+": "GPL-3.0-or-later",
        "lgpl-2.1+": "LGPL-2.1-or-later", **{name.lower(): name for name in ("Apache-2.0", "BSL-1.0", "MPL-2.0", "MIT", "X11")}}
# Packages whose copyright file is no list of licences.
PROSE = {"libc6": "LGPL-2.1-or-later", "libgcc-s1": "GPL-3.0-or-later WITH GCC-exception-3.1",
         "libstdc++6": "GPL-3.0-or-later WITH GCC-exception-3.1"}


def query(*arguments):
    """dpkg-query of SYSROOT's packages; empty if it finds none."""
    return subprocess.run(["dpkg-query", f"--admindir={SYSROOT}/var/lib/dpkg", *arguments], text=True, capture_output=True).stdout


def newest(pattern):
    """The names of the newest package that is installed, or of none."""
    lines = query("--show", "--showformat=${db:Status-Status} ${Package}\n", pattern).splitlines()
    names = [line.split()[1] for line in lines if line.startswith("installed ")]
    return sorted(names, key=lambda name: [int(number) for number in re.findall(r"\d+", name)])[-1:]


def release():
    """Of Debian: 12."""
    return re.search(r'^VERSION_ID="?([\d.]+)', (SYSROOT / "etc" / "os-release").read_text(), re.MULTILINE)[1]


def copyright_of(package):
    return SYSROOT / "usr" / "share" / "doc" / package / "copyright"


def version():
    return re.search(r"project\(runtime_watcher VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def package_of(library):
    """dpkg knows a file by one of its two names: with /usr, or without it."""
    real = "/" + os.path.relpath(os.path.realpath(f"{SYSROOT}/{library}"), SYSROOT.resolve())
    for name in (library, real, real.removeprefix("/usr")):
        for line in query("--search", name).splitlines():
            if not line.startswith("diversion by "):  # Debian 13's C library has one of the dynamic linker
                return line.split(":")[0]
    sys.exit(f"sbom.py: {library} belongs to no package")


def licence_of(package):
    """The licence of most files of a package ("Files: *", else of the first but Debian's own), as an SPDX expression. One
    that SPDX has no name for is a LicenseRef; its text is the package's copyright file."""
    if package in PROSE:
        return PROSE[package]
    paragraphs = copyright_of(package).read_text("utf-8", "replace").split("\n\n")
    files = [each for each in paragraphs if re.search(r"^Files:(?!\s*debian/)", each, re.MULTILINE) and re.search(r"^License:", each, re.MULTILINE)]
    if files:
        chosen = next((each for each in files if re.search(r"^Files:\s*\*\s*$", each, re.MULTILINE)), files[0])
        name = re.search(r"^License:[ \t]*(\S[^\n]*)", chosen, re.MULTILINE)
        if name and name[1].strip().lower() in SPDX:
            return SPDX[name[1].strip().lower()]
    return "LicenseRef-Debian-" + re.sub(r"[^A-Za-z0-9.-]", "-", package)


def described(package, relation):
    shown = query("--show", "--showformat=${source:Package}\t${Version}\t${Maintainer}\t${Architecture}\n", package)
    source, number, maker, architecture = shown.splitlines()[0].split("\t")
    return relation, {
        "SPDXID": "SPDXRef-Package-" + re.sub(r"[^A-Za-z0-9.-]", "-", package), "name": package, "versionInfo": number,
        "supplier": "Organization: " + maker.split(" <")[0], "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION", "licenseDeclared": licence_of(package), "copyrightText": "NOASSERTION",
        "comment": f"The licence is that of most of its files; all are in /usr/share/doc/{package}/copyright of the image.",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": f"pkg:deb/debian/{package}@{number.replace('+', '%2B').replace(':', '%3A')}?"
                                              f"arch={architecture}&distro=debian-{release()}&upstream={source}"}]}


def write_status(root, package):
    """What dpkg knows of the package, in a file of its own: the image has no package manager."""
    fields = "".join(f"{name}: ${{{field}}}\n" for name, field in (
        ("Package", "Package"), ("Status", "Status"), ("Maintainer", "Maintainer"), ("Architecture", "Architecture"),
        ("Source", "source:Package"), ("Version", "Version"), ("Homepage", "Homepage"), ("Description", "binary:Summary")))
    text = query("--show", "--showformat=" + fields, package)
    to = root / "var" / "lib" / "dpkg" / "status.d" / package
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text("".join(line + "\n" for line in text.splitlines()[:fields.count("\n")] if not line.endswith(": ")))
    to.chmod(0o644)


def main():
    root, libraries = pathlib.Path(sys.argv[1]), sys.argv[3:]
    installed = [name for pattern in INSIDE for name in newest(pattern)]
    packages = [described(p, "DYNAMIC_LINK") for p in sorted({package_of(name) for name in libraries})]
    packages += [described("ca-certificates", "CONTAINS")]
    packages += [described(p, "STATIC_LINK") for p in installed]
    for _, each in packages:
        to = root / "usr" / "share" / "doc" / each["name"] / "copyright"
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(copyright_of(each["name"]), to)
        to.chmod(0o644)
        write_status(root, each["name"])
    files = []
    for path in sorted(p for p in root.rglob("*") if p.is_file() and not p.is_symlink() and "doc" not in p.parts):
        content = path.read_bytes()
        files.append({"SPDXID": f"SPDXRef-File-{len(files)}", "fileName": "./" + str(path.relative_to(root)),
                      "checksums": [{"algorithm": a, "checksumValue": hashlib.new(a.lower(), content).hexdigest()}
                                    for a in ("SHA1", "SHA256")],
                      "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION"})
    digest = hashlib.sha256("".join(f["checksums"][1]["checksumValue"] for f in files).encode()).hexdigest()
    created = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc)
    own = {"SPDXID": "SPDXRef-Package-runtime-watcher", "name": "runtime-watcher", "versionInfo": version(),
           "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
           "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION",
           "comment": "Its licence is in /usr/share/doc/runtime-watcher/copyright of the image."}
    extracted = [{"licenseId": each["licenseDeclared"], "name": f"Licences of Debian's package {each['name']}",
                  "extractedText": copyright_of(each["name"]).read_text("utf-8", "replace")}
                 for _, each in packages if each["licenseDeclared"].startswith("LicenseRef-")]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", own["SPDXID"])]
    relations += [(own["SPDXID"], relation, each["SPDXID"]) for relation, each in packages]
    relations += [(own["SPDXID"], "CONTAINS", each["SPDXID"]) for each in files]
    json.dump({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"runtime-watcher-{version()}", "documentNamespace": f"https://spdx.org/spdxdocs/runtime-watcher-{digest}",
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: deploy/image/sbom.py"]},
        "packages": [own, *(each for _, each in packages)], "files": files,
        **({"hasExtractedLicensingInfos": extracted} if extracted else {}),
        "relationships": [{"spdxElementId": a, "relationshipType": how, "relatedSpdxElement": b} for a, how, b in relations],
    }, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    SYSROOT = pathlib.Path(sys.argv[2])
    main()
