#!/usr/bin/env bash
# From a bare machine (Debian 12 or 13) to a control plane that hears of a change on a runtime: installs packages, builds, starts
# `runtime-watcher-dev dev` (API servers for KCP and a runtime, issuer, gateway and manager, all in one process), and does
# what an operator would do: applies a Watcher, creates a Kyma with its runtime, changes a watched object on the
# runtime. Each step is watched until it has happened. Leaves nothing running.
#
#   deploy/quickstart.sh [--built]
#
#   --built   installs and builds nothing, as it is done
#
# Any folder, any number of times; as root or with sudo when packages are missing. Uses kubectl where there is one
# (1.27 or later), else curl.
set -euo pipefail

readonly root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
readonly binary="$root/build/runtime-watcher-dev"
readonly runtime=runtime-1

built=
case "${1:-}" in
  "") ;;
  --built) built=yes ;;
  -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
  *) echo "quickstart: unknown argument '$1'; see --help" >&2; exit 2 ;;
esac

step() { printf '\n[%3ds] %s\n' "$SECONDS" "$*"; }
die() { printf 'quickstart: %s\n' "$*" >&2; exit 1; }

dev=
work=
cleanup() {
  local code=$?
  trap - EXIT INT TERM
  if [[ -n $dev ]] && kill -0 "$dev" 2>/dev/null; then
    kill -KILL "$dev" 2>/dev/null || true
    wait "$dev" 2>/dev/null || true
  fi
  if [[ $code != 0 ]]; then
    [[ -s $work/log ]] && { echo "Last words of runtime-watcher-dev:"; tail -n 15 "$work/log"; } >&2
    echo "quickstart: failed with $code; everything it started is stopped" >&2
  fi
  [[ -z $work ]] || rm -rf "$work"
  exit "$code"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# wait_for SECONDS WHAT COMMAND...: until the command succeeds.
wait_for() {
  local until=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    kill -0 "$dev" 2>/dev/null || die "runtime-watcher-dev ended while waiting for: $what"
    ((SECONDS < until)) || die "gave up waiting for: $what"
    sleep 0.05
  done
  printf '  seen: %s\n' "$what"
}

# --- the two clusters: kcp and the runtime's -----------------------------------------------------------

kubeconfig() { [[ $1 == kcp ]] && echo "$work/kcp.yaml" || echo "$work/skr-$1.yaml"; }
field() { sed -nE "s/^ *$2: *\"?([^\"]*)\"?$/\1/p" "$(kubeconfig "$1")" | head -n 1; }
# api METHOD CLUSTER PATH [CURL OPTIONS...]: a request, with what the cluster's kubeconfig says.
api() {
  local method=$1 cluster=$2 path=$3
  shift 3
  curl --noproxy "*" --silent --show-error --fail-with-body --max-time 10 --request "$method" \
    --cacert <(field "$cluster" certificate-authority-data | base64 -d) \
    --header "Authorization: Bearer $(field "$cluster" token)" "$@" "$(field "$cluster" server)$path"
}
# has CLUSTER PATH PATTERN: true if the object is there and its JSON has the pattern.
has() { api GET "$1" "$2" 2>/dev/null | grep -qE "$3"; }

kubectl_works() {
  local minor
  minor="$(kubectl version --client -o json 2>/dev/null | sed -nE 's/.*"minor": *"([0-9]+).*/\1/p' | head -n 1)"
  [[ -n $minor ]] && ((minor >= 27))
}
# apply CLUSTER PATH FILE: the path is the object's, for curl.
apply() {
  if [[ -n $kubectl ]]; then
    echo "  \$ kubectl --kubeconfig $(kubeconfig "$1") apply -f $3"
    kubectl --kubeconfig "$(kubeconfig "$1")" --cache-dir "$work/cache" apply -f "$3" >/dev/null || die "applying $3 failed"
  else
    echo "  \$ curl --request PATCH --data-binary @$3 ...$2"
    api PATCH "$1" "$2?fieldManager=quickstart" --data-binary "@$3" \
      --header 'Content-Type: application/apply-patch+yaml' >/dev/null || die "applying $3 failed"
  fi
}
# change CLUSTER PATH MERGE-PATCH KUBECTL-NAME...
change() {
  local cluster=$1 path=$2 patch=$3
  shift 3
  if [[ -n $kubectl ]]; then
    echo "  \$ kubectl --kubeconfig $(kubeconfig "$cluster") patch $* --type merge -p '$patch'"
    kubectl --kubeconfig "$(kubeconfig "$cluster")" --cache-dir "$work/cache" patch "$@" --type merge -p "$patch" >/dev/null ||
      die "changing $* failed"
  else
    echo "  \$ curl --request PATCH --data '$patch' ...$path"
    api PATCH "$cluster" "$path" --data "$patch" --header 'Content-Type: application/merge-patch+json' >/dev/null ||
      die "changing $path failed"
  fi
}

readonly kcp_kymas=/apis/operator.kyma-project.io/v1beta2/namespaces/kcp-system/kymas
readonly watcher=/apis/operator.kyma-project.io/v1beta2/namespaces/kcp-system/watchers/kyma
readonly route=/apis/networking.istio.io/v1beta1/namespaces/kcp-system/virtualservices/kyma
readonly secrets=/api/v1/namespaces/kcp-system/secrets
readonly events=/api/v1/namespaces/kcp-system/events
readonly configuration=/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/skr-webhook
readonly deployment=/apis/apps/v1/namespaces/kyma-system/deployments/skr-webhook
readonly watched=/apis/operator.kyma-project.io/v1beta2/namespaces/kyma-system/kymas/default

log_says() { grep -q "\"msg\":\"$1\"" "$work/log"; }
# A resync: a watcher that starts asks its operator to look at everything of its runtime.
told() { grep -qE "\"runtime\":\"$runtime\".*\"resync\":\"started\"" "$work/events"; }
change_event() { grep "\"runtime\":\"$runtime\"" "$work/events" | grep -E '"reconciledAfterMs":[0-9]' | head -n 1; }
requeued() { [[ -n $(change_event) ]]; }

# --- the story -----------------------------------------------------------------------------------------

cd "$root"
if [[ -z $built ]]; then
  step "Packages"
  "$root/deploy/install-packages.sh" build

  step "Build (some minutes the first time)"
  cmake --preset release >/dev/null
  cmake --build --preset release --target installed
elif [[ ! -x $binary ]]; then
  die "$binary is not there: run it without --built"
fi

step "Start: runtime-watcher-dev dev --bare (a control plane that knows of no runtime, and a runtime)"
umask 077  # kubeconfigs and manifests with tokens are for this user alone
work="$(mktemp -d)"
kubectl="$(kubectl_works && echo yes || true)"
"$binary" dev --bare --dir "$work" --runtimes 1 --events json >"$work/events" 2>"$work/log" &
dev=$!
wait_for 30 "the system is up" log_says "the system is up"

step "Apply a Watcher: the control plane wants to hear of Kymas on runtimes"
apply kcp "$watcher" "$work/watcher.yaml"
wait_for 10 "the Watcher is Ready" has kcp "$watcher" '"state": *"Ready"'
wait_for 10 "the gateway leads its events to the manager: VirtualService kyma" has kcp "$route" '/v2/lifecycle-manager/event'

step "Create a Kyma with its runtime: the Secret with the kubeconfig, and the Kyma"
apply kcp "$secrets/kubeconfig-$runtime" "$work/access-$runtime.yaml"
apply kcp "$kcp_kymas/$runtime" "$work/kyma-$runtime.yaml"
wait_for 30 "the webhook runs on the runtime: Deployment skr-webhook has a ready replica" \
  has "$runtime" "$deployment" '"readyReplicas": *1'
wait_for 10 "the runtime's API server calls it: webhook configuration skr-webhook" \
  has "$runtime" "$configuration" '"/validate/lifecycle-manager"'
wait_for 30 "the control plane knows: event WatcherInstalled of the Kyma" has kcp "$events" 'WatcherInstalled'

wait_for 10 "KCP has been told to look at what was there already (a resync)" told
sleep 1  # a Kyma is requeued at once, but once a second at most

step "Change the watched object on the runtime"
change "$runtime" "$watched" '{"spec":{"channel":"fast"}}' -n kyma-system kyma default
wait_for 10 "the change has requeued the runtime's Kyma in the control plane" requeued
line="$(change_event)"
echo "  $line"

step "Stop"
kill -TERM "$dev"
code=0
wait "$dev" || code=$?
dev=
((code == 0)) || die "runtime-watcher-dev ended with $code"
step "Done: from the change to the reconcile it took $(sed -E 's/.*"reconciledAfterMs":([0-9.]+).*/\1/' <<<"$line") ms."

cat <<NEXT

Next:
  build/runtime-watcher-dev dev              the same, and it stays, with two runtimes: it says what to try
  build/runtime-watcher-dev dev --bootstrapper-mode direct
                                             and the configuration of runtimes: change it in KCP, see it arrive
                                             (signal: by a simulated Kyma Infrastructure Manager)
  build/runtime-watcher-dev dev --help       more runtimes, API servers of your own, CA rotations
  build/runtime-watcher manager --help       the control plane's half, as it runs there
  build/runtime-watcher webhook --help       the runtime's half with every option and environment variable
  cmake --install build --prefix FOLDER      programs, headers and libraries (deploy/examples/README.md)
  tests/run.sh                               all tests, against a real API server too (tests/run.sh --fast without)
NEXT
