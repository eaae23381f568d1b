#!/usr/bin/env bash
# Builds the OCI image of runtime-watcher, without a container engine.
#
#   deploy/image/build.sh [--architecture ARCHITECTURE | --binary FILE] [--output FOLDER] [--tag TAG]
#
#   --architecture A  arm64, or this machine's (the default), for which a release build is made, without tests
#   --binary FILE     the executable, of either architecture, in place of a build
#   --output FOLDER   OCI image layout that is made or replaced (default: build/image)
#   --tag TAG         default: the project's version
#
# What an image of another architecture than this machine's is linked against comes from deploy/image/sysroot.sh.
# Prints the image's digest. The same sources, packages and SOURCE_DATE_EPOCH (by default the time of the last commit) give
# the same digest. To send the image to a registry: skopeo copy oci:FOLDER:TAG docker://REGISTRY/runtime-watcher:TAG
set -euo pipefail

readonly here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly root="$(cd "$here/../.." && pwd)"
readonly largest=$((12 * 1024 * 1024))  # bytes, compressed
die() { printf 'build.sh: %s\n' "$*" >&2; exit 1; }

readonly own="$(dpkg --print-architecture)"
architecture=
binary=
output="$root/build/image"
version="$(sed -n 's/^project(runtime_watcher VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")"
tag="$version"
while (($#)); do
  case "$1" in
    --architecture | --binary | --output | --tag)
      [[ -n ${2:-} ]] || die "$1 needs a value"
      declare "${1#--}=$2"
      shift 2
      ;;
    -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) die "unknown argument '$1'; see --help" ;;
  esac
done

[[ -z $architecture || -z $binary ]] || die "the executable is of one architecture: --architecture goes without --binary"
command -v umoci >/dev/null || die "umoci is missing; run deploy/install-packages.sh image"
if [[ -z ${SOURCE_DATE_EPOCH:-} ]]; then
  SOURCE_DATE_EPOCH="$(git -C "$root" log -1 --format=%ct 2>/dev/null)" || die "this is no git checkout; set SOURCE_DATE_EPOCH"
fi
export SOURCE_DATE_EPOCH
revision="$(git -C "$root" rev-parse HEAD 2>/dev/null || echo unknown)"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
if [[ -z $binary ]]; then
  preset=release
  [[ ${architecture:-$own} == "$own" ]] || preset="release-$architecture"
  grep -q "\"configurePreset\": \"$preset\"" "$root/CMakePresets.json" || die "there is no preset $preset to build with"
  echo "build.sh: building the executable with the preset $preset" >&2
  cmake -S "$root" --preset "$preset" -B "$work/build" -DRW_TESTS=OFF -DRW_BENCH=OFF -DRW_REVISION="${revision:0:12}" >&2
  cmake --build "$work/build" --target runtime-watcher >&2
  binary="$work/build/runtime-watcher"
fi
architecture="$(python3 -B "$here/elf.py" architecture "$binary")"
architecture="${architecture% *}"
sysroot=/
[[ $architecture == "$own" ]] || sysroot="$("$here/sysroot.sh" "$architecture")"
"$here/rootfs.sh" "$binary" "$work/rootfs" "$sysroot"

created="$(date --utc --date "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)"
run_umoci() { umoci --log=error "$@" >&2; }
run_umoci init --layout "$work/layout"
run_umoci new --image "$work/layout:$tag"
as=()
[[ $(id -u) == 0 ]] || as=(--rootless)
run_umoci insert "${as[@]}" --image "$work/layout:$tag" --history.created "$created" --history.author "deploy/image" \
  --history.comment "" --history.created_by "deploy/image/build.sh" "$work/rootfs" /
title=org.opencontainers.image
run_umoci config --image "$work/layout:$tag" --no-history --created "$created" --os linux \
  --architecture "$architecture" --config.user 10001:10001 --config.workingdir / \
  --config.entrypoint /usr/bin/runtime-watcher --config.cmd webhook --config.env PATH=/usr/bin \
  --config.label "$title.title=runtime-watcher" --config.label "$title.version=$version" \
  --config.label "$title.revision=$revision" --config.label "$title.created=$created" \
  --config.label "$title.licenses=Apache-2.0" \
  --config.label "$title.description=Tells a control plane what changed on thousands of Kubernetes clusters" \
  --manifest.annotation "$title.version=$version" --manifest.annotation "$title.revision=$revision"
run_umoci gc --layout "$work/layout"

size="$(find "$work/layout/blobs" -type f -printf '%s\n' | awk '{ all += $1 } END { print all }')"
((size <= largest)) || die "the image has $size bytes, more than $largest"
cp "$work/rootfs/usr/share/doc/runtime-watcher/sbom.spdx.json" "$work/layout.spdx.json"
mkdir -p "$(dirname "$output")"
rm -rf "$output"
mv "$work/layout" "$output"
mv "$work/layout.spdx.json" "$output.spdx.json"
digest="$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1] + "/index.json"))["manifests"][0]["digest"])' "$output")"
printf '%s\n' "$digest"
echo "build.sh: $output:$tag has $((size / 1024)) KiB; SBOM in $output.spdx.json" >&2
