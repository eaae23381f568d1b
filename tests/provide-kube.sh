#!/usr/bin/env bash
# Provides kube-apiserver, etcd, kubectl and what a node runs for the tests, from Debian packages alone.
#
#   export KUBEBUILDER_ASSETS="$(tests/provide-kube.sh)"
#
# prints the folder that holds them; progress goes to stderr. A KUBEBUILDER_ASSETS that is already set and holds
# kube-apiserver and etcd is used as it is; the tests on a node are skipped where it lacks what a node runs. Otherwise
# Kubernetes 1.20.2 is built once from Debian 12's source package and kept under
# ${XDG_CACHE_HOME:-$HOME/.cache}/runtime-watcher, some minutes the first time and nothing later. Nothing is installed but
# the few tools of `deploy/install-packages.sh kube`: the compiler, etcd, kubectl, containerd, runc and the CNI plugins are
# downloaded and unpacked, so that no service starts and no package of the machine changes.
#
# kube-apiserver speaks only HTTP/1.1 to admission webhooks, as every version before 1.30
# (github.com/kubernetes/kubernetes pull 82090). The one line that forbids HTTP/2 is made to depend on the environment
# variable WEBHOOK_HTTP2: kube-apiserver-http2 is a script that sets it, and so runs a server that calls webhooks on a
# loopback address as 1.30 and later do (pull 122558).
set -euo pipefail

readonly here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly kube_version=1.20.2
readonly recipe=4  # raise it when the recipe below changes, and old caches are no longer used
readonly began=$SECONDS
readonly built=(kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy)
readonly unpacked=(containerd containerd-shim-runc-v2 ctr runc)
readonly plugins=(bridge host-local loopback portmap)  # of CNI, in the folder cni

case "${1:-}" in
  "") ;;
  -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
  *) echo "provide-kube.sh: unknown argument '$1'; see --help" >&2; exit 2 ;;
esac

say() { printf 'provide-kube [%3ds] %s\n' $((SECONDS - began)) "$*" >&2; }
die() { printf 'provide-kube: %s\n' "$*" >&2; exit 1; }

# True when the folder holds an API server and its storage, and both run.
has_control_plane() {
  [[ -x $1/kube-apiserver && -x $1/etcd ]] || return 1
  "$1/kube-apiserver" --version >/dev/null 2>&1 && "$1/etcd" --version >/dev/null 2>&1
}

# True when the folder also holds what a node runs, and each of it runs.
complete() {
  has_control_plane "$1" || return 1
  local name
  for name in "${built[@]}" "${unpacked[@]}"; do
    if [[ $name == containerd-shim-* ]]; then
      "$1/$name" -v >/dev/null 2>&1 || return 1
    else
      "$1/$name" --version >/dev/null 2>&1 || return 1
    fi
  done
  for name in "${plugins[@]}"; do
    CNI_COMMAND=VERSION "$1/cni/$name" </dev/null >/dev/null 2>&1 || return 1
  done
}

if [[ -n ${KUBEBUILDER_ASSETS:-} ]]; then
  has_control_plane "$KUBEBUILDER_ASSETS" ||
    die "KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS holds no kube-apiserver and etcd that run; unset it to have them built"
  say "using KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS"
  cd "$KUBEBUILDER_ASSETS" && pwd
  exit 0
fi

readonly cache="${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/runtime-watcher"
readonly assets="$cache/kube-$kube_version-$(dpkg --print-architecture)-r$recipe"
mkdir -p "$cache"

# One build at a time; whoever waited finds it done.
exec 9>"$cache/.lock"
flock --wait 1800 9 || die "another provide-kube.sh has held $cache/.lock for half an hour"

if complete "$assets"; then
  say "cached in $assets"
  echo "$assets"
  exit 0
fi

# shellcheck source=/dev/null
codename="$(. /etc/os-release && echo "${VERSION_CODENAME:-}")"
[[ $codename == bookworm ]] ||
  die "kube-apiserver is built from Debian 12's source package, and this is '${codename:-unknown}'; set KUBEBUILDER_ASSETS to a folder with kube-apiserver and etcd, or run tests/run.sh --fast"
"$here/../deploy/install-packages.sh" kube >&2

rm -rf "$cache"/.making.*  # left by a run that was killed; the lock says nobody works there
readonly work="$(mktemp -d "$cache/.making.XXXXXX")"
cleanup() {
  local code=$?
  chmod -R u+w "$work" 2>/dev/null || true
  rm -rf "$work"
  [[ $code == 0 ]] || say "failed; nothing is left behind in $cache"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# retry WHAT COMMAND...: three attempts, since mirrors have bad moments.
retry() {
  local what=$1 attempt
  shift
  for attempt in 1 2 3; do
    "$@" >"$work/log" 2>&1 && return 0
    say "$what: attempt $attempt of 3 failed: $(tail -n 1 "$work/log")"
  done
  tail -n 20 "$work/log" >&2
  die "$what failed three times"
}

# Downloads Debian packages and unpacks them into $work/root.
unpack() {
  retry "downloading $*" bash -c 'cd "$1" && shift && apt-get download "$@"' - "$work/debs" "$@"
  local deb
  for deb in "$work"/debs/*.deb; do
    dpkg-deb -x "$deb" "$work/root"
  done
}

# Runs a long step and says once in a while that it is alive.
with_progress() {
  local what=$1
  shift
  say "$what"
  "$@" >"$work/log" 2>&1 &
  local step=$!
  until timeout 20 tail --pid="$step" -f /dev/null; do  # until the step has ended, speaking up every 20 s
    say "  ... $(grep -v '^ *$' "$work/log" | tail -n 1 | cut -c1-100)"
  done
  wait "$step" || { tail -n 40 "$work/log" >&2; die "$what failed"; }
}

fetch_source() {
  cd "$work/source" && apt-get source kubernetes
}

build_kubernetes() {
  cd "$work/gopath/src/k8s.io/kubernetes"
  env -i PATH="$work/root/usr/lib/go-1.19/bin:/usr/bin:/bin" HOME="$work" LANG=C.UTF-8 \
    GOROOT="$work/root/usr/lib/go-1.19" GOPATH="$work/gopath" GOCACHE="$work/gocache" GOFLAGS= GOTOOLCHAIN=local \
    CGO_ENABLED=0 KUBE_GIT_VERSION_FILE="$work/version" \
    make WHAT="${built[*]/#/cmd/}"
}

say "making Kubernetes $kube_version, etcd, kubectl and containerd into $assets (once; needs about 5 GiB meanwhile)"
APT_CONFIG="$(python3 -B "$here/../deploy/private_apt.py" "$work/apt" --source)"
export APT_CONFIG
mkdir -p "$work"/{debs,root,source,gopath/src/k8s.io,bin}
retry "reading package lists" apt-get update
apt-cache showsrc kubernetes 2>/dev/null | grep -q "^Version:.*$kube_version" ||
  die "the apt entries of this machine offer no source package kubernetes $kube_version"
say "downloading the Go compiler, etcd, containerd, runc and the CNI plugins"
unpack golang-1.19-go golang-1.19-src golang-github-modern-go-reflect2-dev etcd-server containerd runc containernetworking-plugins
cp "$work/root/usr/bin/etcd" "$work/bin/etcd"
for name in "${unpacked[@]}"; do
  cp "$(find "$work/root/usr/bin" "$work/root/usr/sbin" -name "$name" -print -quit)" "$work/bin/$name"
done
mkdir "$work/bin/cni"
cp "${plugins[@]/#/$work/root/usr/lib/cni/}" "$work/bin/cni/"
if ! command -v kubectl >/dev/null; then
  unpack kubernetes-client
  cp "$work/root/usr/bin/kubectl" "$work/bin/kubectl"
else
  ln -s "$(command -v kubectl)" "$work/bin/kubectl"
fi
with_progress "downloading and unpacking Debian's source of kubernetes" fetch_source
source_tree="$(echo "$work"/source/kubernetes-*/)"
ln -s "${source_tree%/}" "$work/gopath/src/k8s.io/kubernetes"

# reflect2 1.0.1, which the source carries, crashes the server at the first custom resource when built by Go 1.18 and
# later; Debian's package of 1.0.2 does not.
reflect2="$source_tree/vendor/github.com/modern-go/reflect2"
find "$reflect2" -maxdepth 1 \( -name '*.go' -o -name '*.s' \) -delete
find "$work/root/usr/share/gocode/src/github.com/modern-go/reflect2" -maxdepth 1 \( -name '*.go' -o -name '*.s' \) \
  ! -name '*_test.go' -exec cp -t "$reflect2" {} +
cat >"$work/version" <<VERSION
KUBE_GIT_COMMIT=archive
KUBE_GIT_TREE_STATE=archive
KUBE_GIT_VERSION=v$kube_version
KUBE_GIT_MAJOR=${kube_version%%.*}
KUBE_GIT_MINOR=$(cut -d. -f2 <<<"$kube_version")
VERSION
webhook_client="$source_tree/staging/src/k8s.io/apiserver/pkg/util/webhook/client.go"
grep -qP '^\t*cfg.NextProtos = \[\]string{"http/1.1"}$' "$webhook_client" && grep -q '^import ($' "$webhook_client" ||
  die "the source is not as expected: $webhook_client"
sed -i -e 's/^\s*\(cfg.NextProtos = .*\)$/if os.Getenv("WEBHOOK_HTTP2") == "" { \1 }/' -e 's/^import ($/import (\n"os"/' \
  "$webhook_client"
with_progress "building ${built[*]}" build_kubernetes
cp "${built[@]/#/$source_tree/_output/local/bin/linux/$(dpkg --print-architecture)/}" "$work/bin/"
cat >"$work/bin/kube-apiserver-http2" <<'SCRIPT'
#!/bin/sh
WEBHOOK_HTTP2=yes exec "$(dirname "$0")/kube-apiserver" "$@"
SCRIPT
chmod +x "$work/bin/kube-apiserver-http2"

complete "$work/bin" || die "what was built does not run"
[[ $("$work/bin/kube-apiserver" --version) == "Kubernetes v$kube_version" ]] || die "kube-apiserver has the wrong version"
"$work/bin/kube-apiserver-http2" --version >/dev/null || die "kube-apiserver-http2 does not run"
"$work/bin/kubectl" version --client >/dev/null 2>&1 || die "kubectl does not run"
rm -rf "$cache"/kube-*  # older recipes
mv "$work/bin" "$assets"
say "made in $assets"
echo "$assets"
