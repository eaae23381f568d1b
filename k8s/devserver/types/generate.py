#!/usr/bin/env python3
"""Writes builtin_table.cpp: what the Go types of Kubernetes' built-in kinds say about their fields.

    k8s/devserver/types/generate.py [FOLDER] [--check]

FOLDER holds the packages golang-k8s-api-dev and golang-k8s-apimachinery-dev (Debian, 0.32.3) unpacked by `dpkg-deb -x`,
by default that of RW_TEST_TYPES; tests/provide-types.sh downloads them. With --check it writes nothing: it ends with 1 if the table is not what these
packages say, or if what it says about server-side apply differs from the schema in golang-k8s-client-go-dev.

Taken from the packages are facts: names, numbers, types and markers; no documentation. The kinds of apiextensions.k8s.io
are in no package, and are written at the end of this file.
"""
import json
import os
import pathlib
import re
import subprocess
import sys

GROUPS = """core/v1 apps/v1 batch/v1 coordination/v1 rbac/v1 networking/v1 policy/v1 autoscaling/v1 autoscaling/v2
admissionregistration/v1 authentication/v1 authorization/v1 certificates/v1 certificates/v1beta1 certificates/v1alpha1
discovery/v1 events/v1 flowcontrol/v1 node/v1 scheduling/v1 storage/v1""".split()
META = "meta/v1"
HERE = pathlib.Path(__file__).parent

# Types of the Go library that write their JSON themselves.
SPECIAL = {"Time": "time", "MicroTime": "micro_time", "Duration": "duration", "Quantity": "quantity",
           "IntOrString": "int_or_string", "RawExtension": "raw", "FieldsV1": "raw", "UID": "text"}
BASIC = {"string": "text", "bool": "boolean", "int": "integer", "int32": "integer32", "int64": "integer",
         "float64": "number", "[]byte": "bytes", "byte": "integer32"}

# Kinds that no package holds. Numbers are left out: they are not sent in protobuf.
BY_HAND = '''
type CustomResourceDefinition struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec any `json:"spec"`
	Status CustomResourceDefinitionStatus `json:"status,omitempty"`
}
type CustomResourceDefinitionStatus struct {
	// +listType=map
	// +listMapKey=type
	Conditions []CustomResourceDefinitionCondition `json:"conditions"`
	AcceptedNames any `json:"acceptedNames"`
	// +listType=atomic
	StoredVersions []string `json:"storedVersions"`
}
type CustomResourceDefinitionCondition struct {
	Type string `json:"type"`
	Status string `json:"status"`
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	Reason string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}
'''


class GoPackage:
    """The declarations of one types.go."""

    def __init__(self, name, text):
        self.name, self.structs, self.aliases, self.imports = name, {}, {}, {}
        lines, markers, at = text.split("\n"), [], 0
        while at < len(lines):
            line = lines[at].strip()
            at += 1
            if line.startswith("//"):
                markers.append(line[2:].strip())
            elif m := re.match(r"type (\w+) struct \{(\})?$", line):
                fields = []
                if not m[2]:
                    at, fields = self.read_fields(lines, at)
                self.structs[m[1]] = (markers, fields)
                markers = []
            elif m := re.match(r"type (\w+) ([\w.\[\]*]+)$", line):
                self.aliases[m[1]] = m[2]
                markers = []
            else:
                if m := re.match(r'(?:import )?(\w+)? ?"k8s.io/(?:api|apimachinery/pkg/apis)/([\w/]+)"$', line):
                    self.imports[m[1] or m[2].split("/")[-1]] = m[2]
                if line:  # markers of a type may stand apart from it
                    markers = []

    @staticmethod
    def read_fields(lines, at):
        fields, markers = [], []
        while lines[at] != "}":
            line = lines[at].strip()
            at += 1
            if line.startswith("//"):
                markers.append(line[2:].strip())
            elif m := re.match(r"(?:(\w+)\s+)?([\w.\[\]*]+)\s+`(.*)`", line):
                fields.append((m[2], dict(re.findall(r'(\w+):"([^"]*)"', m[3])), markers))
                markers = []
            else:
                markers = []
        return at + 1, fields


def marker(markers, name):
    return [m.split("=", 1)[1] for m in markers if m.startswith("+" + name + "=")]


class Table:
    def __init__(self, folder):
        src = folder / "usr/share/gocode/src/k8s.io"
        self.packages = {META: GoPackage(META, (src / "apimachinery/pkg/apis/meta/v1/types.go").read_text())}
        for group in GROUPS:
            self.packages[group] = GoPackage(group, (src / "api" / group / "types.go").read_text())
        hand = GoPackage("apiextensions/v1", BY_HAND)
        hand.imports["metav1"] = META
        self.packages[hand.name] = hand
        self.types = {}
        for name, package in self.packages.items():
            for struct, (_, fields) in package.structs.items():
                kind = any(f[0].endswith("TypeMeta") for f in fields)
                if kind and (name != META or struct in ("Status", "DeleteOptions", "PartialObjectMetadata")) \
                        and not any(f[0].endswith("ListMeta") and not name == META for f in fields):
                    self.add(package, struct)

    def add(self, package, struct):
        key = package.name + "." + struct
        if key in self.types:
            return key
        markers, fields = package.structs[struct]
        made = self.types[key] = {"atomic": "atomic" in marker(markers, "structType") + marker(markers, "mapType"),
                                  "fields": [], "resource": False}
        for go, tags, about in fields:
            if go.endswith("TypeMeta"):
                made["resource"] = True
                continue
            name, *options = tags["json"].split(",")
            if name == "-":
                continue
            number = re.search(r"\d+", tags.get("protobuf", ""))
            field = {"name": name, "number": int(number[0]) if number else 0, "pointer": go.startswith("*"),
                     "omitempty": "omitempty" in options, "merge": "", "keys": "", "default": "", "flags": set()}
            self.resolve(package, go.lstrip("*"), field)
            if "retainKeys" in tags.get("patchStrategy", ""):
                field["flags"].add("retains_keys")
            if tags.get("patchStrategy") == "replace":
                field["flags"].add("replaces")
            lists, kinds = marker(about, "listType"), marker(about, "mapType") + marker(about, "structType")
            if field["holder"] == "list":
                if tags.get("patchStrategy", "").startswith("merge"):
                    field["flags"].add("patch_merges")
                    field["merge"] = tags.get("patchMergeKey", "")
                if lists:
                    field["flags"] |= {"list_" + lists[0]} - {"list_atomic"}
                    field["keys"] = " ".join(marker(about, "listMapKey"))
                elif "patch_merges" in field["flags"]:  # kube-openapi reads it so
                    field["flags"].add("list_map" if field["merge"] else "list_set")
                    field["keys"] = field["merge"]
            if "atomic" in kinds:
                field["flags"].add("atomic")
            if default := marker(about, "default"):
                if not default[0].startswith("ref("):
                    field["default"] = default[0]
            made["fields"].append(field)
        return key

    def resolve(self, package, go, field):
        """Sets holder (single, list, map), type and of; follows aliases."""
        field["holder"], field["of"] = "single", ""
        while True:
            go = go.lstrip("*")
            if go in BASIC:
                field["type"] = BASIC[go]
                return
            if go == "any":
                field["type"] = "raw"
                return
            if m := re.match(r"map\[[\w.]+\](.*)", go):
                field["holder"], go = "map", m[1]
                continue
            if go.startswith("[]") and field["holder"] == "single":
                field["holder"], go = "list", go[2:]
                continue
            if go == "[]string":
                field["type"] = "texts"
                return
            if "." in go:
                prefix, go = go.split(".")
                if prefix in ("resource", "intstr", "runtime", "types"):
                    field["type"] = SPECIAL[go]
                    return
                package = self.packages[package.imports[prefix]]
            if package.name == META and go in SPECIAL:
                field["type"] = SPECIAL[go]
                return
            if go in package.aliases:
                alias = package.aliases[go]
                # A named list is a message of its own.
                if alias == "[]string" and field["holder"] != "list":
                    field["type"] = "texts"
                    return
                go = alias
                continue
            field["type"], field["of"] = "object", self.add(package, go)
            return

    def text(self):
        names = sorted(self.types)
        index = {name: i for i, name in enumerate(names)}
        fields, types = [], []
        for name in names:
            of = self.types[name]
            group, struct = name.split(".")
            flags = (["atomic"] if of["atomic"] else []) + (["resource"] if of["resource"] else [])
            types.append(f'    {{"{group}", "{struct}", {len(fields)}, {len(of["fields"])}, {" | ".join(flags) or 0}}},')
            for f in of["fields"]:
                flags = sorted(f["flags"]) + (["pointer"] if f["pointer"] else []) + (
                    ["omitempty"] if f["omitempty"] else [])
                row = [f'"{f["name"]}"', str(f["number"]), f["type"], f["holder"], " | ".join(flags) or "0",
                       str(index[f["of"]]) if f["of"] else "0"]
                tail = [f'"{f["keys"]}"', f'"{f["merge"]}"', json.dumps(f["default"])]
                while tail and tail[-1] == '""':
                    tail.pop()
                fields.append("    {" + ", ".join(row + tail) + "},")
        return HEAD + "constexpr builtin_field fields[] = {\n" + "\n".join(fields) + \
            "\n};\n\nconstexpr builtin_type types[] = {\n" + "\n".join(types) + "\n};\n" + TAIL

    def apply_schema(self):
        """What the table says of each list and map: {type: {field: (kind, keys)}}, in client-go's names."""
        def name_of(key):
            group, struct = key.split(".")
            prefix = "io.k8s.apimachinery.pkg.apis." if group == META else "io.k8s.api."
            return prefix + group.replace("/", ".") + "." + struct
        made = {}
        for key, of in self.types.items():
            made[name_of(key)] = rows = {}
            self.collect(of, rows)
        return made

    def collect(self, of, rows):
        for f in of["fields"]:
            if not f["name"]:
                self.collect(self.types[f["of"]], rows)
            elif f["holder"] == "list":
                kind = "map" if "list_map" in f["flags"] else "set" if "list_set" in f["flags"] else "atomic"
                rows[f["name"]] = (kind, tuple(sorted(f["keys"].split())))
            else:
                atomic = "atomic" in f["flags"] or (f["of"] and self.types[f["of"]]["atomic"])
                granular = f["holder"] == "map" or (f["type"] == "object")
                rows[f["name"]] = ("atomic" if atomic else "granular", ()) if granular else ("scalar", ())


def read_yaml(lines):
    """Reads the YAML that client-go's schema is written in: block mappings and sequences of words."""
    def value(at, depth):
        if lines[at].startswith("- ", depth):
            made = []
            while at < len(lines) and lines[at].startswith(" " * depth + "- "):
                lines[at] = lines[at].replace("- ", "  ", 1)
                if re.match(r" *\w+:( |$)", lines[at]):
                    item, at = value(at, depth + 2)
                else:
                    item, at = lines[at].strip(), at + 1
                made.append(item)
            return made, at
        made = {}
        while at < len(lines) and re.match(r" {%d}[\w]+:" % depth, lines[at]):
            name, _, text = lines[at].strip().partition(":")
            at += 1
            if text:
                made[name] = text.strip()
            else:
                inner = len(lines[at]) - len(lines[at].lstrip())
                made[name], at = value(at, inner)
        return made, at
    made, at = value(0, 0)
    if at != len(lines):
        sys.exit(f"client-go's schema has a line that this does not read: {lines[at]}")
    return made


def client_schema(folder):
    """The same from client-go's own schema of its types."""
    text = (folder / "usr/share/gocode/src/k8s.io/client-go/applyconfigurations/internal/internal.go").read_text()
    text = re.search(r"typed\.YAMLObject\(`(.*?)`\)", text, re.S)[1]
    types = {t["name"]: t for t in read_yaml(text.rstrip("\n").split("\n"))["types"]}

    def kind_of(type_):
        if "scalar" in type_:
            return ("scalar", ())
        if "list" in type_:
            if type_["list"]["elementRelationship"] == "atomic":
                return ("atomic", ())
            keys = type_["list"].get("keys", [])
            return ("map" if keys else "set", tuple(sorted(keys)))
        if "map" in type_:
            return ("atomic" if type_["map"].get("elementRelationship") == "atomic" else "granular", ())
        if type_.get("elementRelationship") == "atomic":
            return ("atomic", ())
        return kind_of(types[type_["namedType"]]) if "namedType" in type_ else ("granular", ())

    return {name: {f["name"]: kind_of(f["type"]) for f in t["map"].get("fields", [])}
            for name, t in types.items() if "map" in t}


def differences(ours, theirs):
    """Fields that the two say differently, without the types that write their JSON themselves."""
    found, compared = [], 0
    for name in sorted(ours.keys() & theirs.keys()):
        if name.endswith((".FieldsV1", ".Time", ".MicroTime")):
            continue
        for field in sorted(ours[name].keys() | theirs[name].keys()):
            if name.endswith(".ManagedFieldsEntry") and field == "fieldsV1":
                continue
            if field in ("apiVersion", "kind") and field not in ours[name]:
                continue
            compared += 1
            a, b = ours[name].get(field), theirs[name].get(field)
            if a != b:
                found.append(f"{name}.{field}: here {a}, client-go {b}")
    return found, compared


HEAD = """// clang-format off
// Made by generate.py; do not edit. Facts of the Go types in Debian's golang-k8s-api-dev and
// golang-k8s-apimachinery-dev 0.32.3, Copyright 2014-2024 The Kubernetes Authors, licensed under the
// Apache License, Version 2.0 (http://www.apache.org/licenses/LICENSE-2.0).

#include "rw/k8s/devserver/builtin_table.hpp"

namespace rw::k8s::devserver {
namespace {

using enum go_type;
using enum holder;
using enum trait::bits;

"""
TAIL = """
}  // namespace

std::span<const builtin_field> builtin_fields() noexcept { return fields; }
std::span<const builtin_type> builtin_types() noexcept { return types; }

}  // namespace rw::k8s::devserver
"""


def main():
    check = "--check" in sys.argv[1:]
    folders = [x for x in sys.argv[1:] if x != "--check"] or [os.environ.get("RW_TEST_TYPES")]
    if not folders[0]:
        print("skipped: RW_TEST_TYPES names no folder; RW_TEST_TYPES=\"$(tests/provide-types.sh)\"")
        return 77
    folder = pathlib.Path(folders[0])
    table, output = Table(folder), HERE.parent / "builtin_table.cpp"
    if not check:
        output.write_text(table.text())
        return 0
    found, compared = differences(table.apply_schema(), client_schema(folder))
    for line in found:
        print(line)
    print(f"{len(table.types)} types, {compared} fields compared with client-go's schema, {len(found)} differ")
    if output.read_text() != table.text():
        print("builtin_table.cpp is not what generate.py makes of these packages")
        return 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
