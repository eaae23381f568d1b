#!/usr/bin/env bash
# Makes the files of a release, offline once deploy/image/sysroot.sh has the arm64 packages.
#
#   deploy/release.sh VERSION [--output FOLDER] [--binary FILE]... [--layout FOLDER]... [--key FILE]
#
#   --output FOLDER   made or replaced (default: build/release)
#   --binary FILE     an executable, once for each architecture; by default release builds for this machine and for arm64 are made
#   --layout FOLDER   an image that deploy/image/build.sh made elsewhere, of the same commit and another architecture; can be repeated
#   --key FILE        private key (PEM) that signs SHA256SUMS, of which all other files are part
#
# The files: notes.md (of CHANGELOG.md), the image index with an image of each architecture as an archive of an OCI layout, its
# digest, an SBOM (SPDX) of each image, both charts, provenance (in-toto, SLSA 1.0), SHA256SUMS. The same commit, packages and
# SOURCE_DATE_EPOCH (by default the time of the commit) make the same files.
#
# VERSION is that of CMakeLists.txt and of the charts, and has a section in CHANGELOG.md.
set -euo pipefail

readonly root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
die() { printf 'release.sh: %s\n' "$*" >&2; exit 1; }

version=
output="$root/build/release"
binaries=()
layouts=()
key=
while (($#)); do
  case "$1" in
    -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    --output | --binary | --layout | --key)
      [[ -n ${2:-} ]] || die "$1 needs a value"
      case "$1" in
        --output) output=$2 ;;
        --binary) binaries+=("$2") ;;
        --layout) layouts+=("$2") ;;
        --key) key=$2 ;;
      esac
      shift 2
      ;;
    -*) die "unknown argument '$1'; see --help" ;;
    *) [[ -z $version ]] || die "two versions: $version and $1"; version=$1; shift ;;
  esac
done
[[ -n $version ]] || die "the version is missing; see --help"
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || die "'$version' is no version such as 1.2.3"

grep -q "^project(runtime_watcher VERSION $version " "$root/CMakeLists.txt" || die "CMakeLists.txt has another version"
for chart in "$root"/deploy/helm/*/Chart.yaml; do
  for field in version appVersion; do
    grep -qx "$field: $version" "$chart" || die "$chart: $field is not $version"
  done
done
for tool in umoci git python3 tar gzip sha256sum openssl; do
  command -v "$tool" >/dev/null || die "$tool is missing; run deploy/install-packages.sh image"
done
if ((!${#binaries[@]})) && ! command -v aarch64-linux-gnu-strip >/dev/null; then
  die "an arm64 image can't be built; run deploy/install-packages.sh cross, or name executables with --binary"
fi
[[ -z $key || -r $key ]] || die "cannot read the key $key"
if [[ -z ${SOURCE_DATE_EPOCH:-} ]]; then
  SOURCE_DATE_EPOCH="$(git -C "$root" log -1 --format=%ct 2>/dev/null)" || die "this is no git checkout; set SOURCE_DATE_EPOCH"
fi
export SOURCE_DATE_EPOCH

umask 022
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
out="$work/out"
mkdir "$out"

awk -v heading="## [$version]" 'index($0, "## [") == 1 { on = index($0, heading) == 1; next } on' "$root/CHANGELOG.md" >"$work/notes"
[[ -n $(tr -d '[:space:]' <"$work/notes") ]] || die "CHANGELOG.md has no section [$version], or nothing in it"
{ printf '# Runtime Watcher %s\n' "$version"; cat "$work/notes"; } >"$out/notes.md"

# Archives: names in order, one owner, one time.
pack() { LC_ALL=C tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r,go-w --mtime="@$SOURCE_DATE_EPOCH" --format=ustar -C "$1" -cf - "$2"; }

# image OPTION VALUE: builds one, and adds its layout.
image() {
  local layout="$work/image-${#layouts[@]}"
  "$root/deploy/image/build.sh" "$@" --output "$layout" --tag "$version" >/dev/null
  layouts+=("$layout")
}
if ((${#binaries[@]})); then
  for binary in "${binaries[@]}"; do image --binary "$binary"; done
else
  for architecture in $(printf '%s\n' arm64 "$(dpkg --print-architecture)" | sort -u); do image --architecture "$architecture"; done
fi
digest="$(python3 -B "$root/deploy/image/index.py" "$work/runtime-watcher" "$version" "${layouts[@]}")"
printf '%s\n' "$digest" >"$out/image.digest"
for layout in "${layouts[@]}"; do
  architecture="$(python3 -B -c 'import sys; sys.path.insert(0, sys.argv[1]); import index, pathlib
print(index.manifest_of(pathlib.Path(sys.argv[2]))[0]["platform"]["architecture"])' "$root/deploy/image" "$layout")"
  cp "$layout.spdx.json" "$out/image-$architecture.spdx.json" || die "$layout.spdx.json, the SBOM beside the layout, is missing"
done
pack "$work" runtime-watcher >"$out/runtime-watcher-$version.oci.tar"

"$root/deploy/helm/package.sh" "$work/charts"
for chart in "$work"/charts/*; do
  name="$(basename "$chart")"
  pack "$work/charts" "$name" | gzip --no-name --best >"$out/$name-$version.tgz"
done

python3 -B - "$out" "$version" "$digest" "$(git -C "$root" rev-parse HEAD)" >"$work/provenance.json" <<'PYTHON'
import hashlib, json, os, pathlib, sys
out, version, digest, revision = pathlib.Path(sys.argv[1]), *sys.argv[2:]
subjects = [{"name": path.name, "digest": {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}} for path in sorted(out.iterdir())]
packages = {}
for path in sorted(out.glob("*.spdx.json")):
    for package in json.loads(path.read_text())["packages"]:
        for reference in package.get("externalRefs", []):
            packages[reference["referenceLocator"]] = {"uri": reference["referenceLocator"], "name": package["name"]}
print(json.dumps({
    "_type": "https://in-toto.io/Statement/v1",
    "subject": [*subjects, {"name": "runtime-watcher", "digest": {"sha256": digest.removeprefix("sha256:")}}],
    "predicateType": "https://slsa.dev/provenance/v1",
    "predicate": {
        "buildDefinition": {
            "buildType": "urn:runtime-watcher:deploy/release.sh",
            "externalParameters": {"version": version, "SOURCE_DATE_EPOCH": int(os.environ["SOURCE_DATE_EPOCH"])},
            "resolvedDependencies": [{"uri": "git+urn:runtime-watcher", "digest": {"gitCommit": revision}},
                                     *(packages[name] for name in sorted(packages))]},
        "runDetails": {"builder": {"id": "urn:runtime-watcher:deploy/release.sh"}}}}, indent=1))
PYTHON
mv "$work/provenance.json" "$out/provenance.intoto.json"
(cd "$out" && LC_ALL=C sha256sum -- * >"$work/sums")
mv "$work/sums" "$out/SHA256SUMS"
if [[ -n $key ]]; then
  openssl dgst -sha256 -sign "$key" -out "$out/SHA256SUMS.sig" "$out/SHA256SUMS" || die "cannot sign with $key"
fi
mkdir -p "$(dirname "$output")"
rm -rf "$output"
mv "$out" "$output"
echo "release.sh: $output has version $version, image index $digest" >&2
