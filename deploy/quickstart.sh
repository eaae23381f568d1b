#!/usr/bin/env bash
# From a bare Debian 12 machine to events that arrive: installs packages, builds, starts `runtime-watcher dev` (webhook
# and listener in one process, with certificates of their own in a temporary folder), posts the AdmissionReviews of
# deploy/samples/, and checks that exactly the expected events come out. Leaves nothing running.
#
#   deploy/quickstart.sh
#
# Any folder, any number of times; as root or with sudo when packages are missing.
set -euo pipefail

readonly root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
readonly binary="$root/build/runtime-watcher"
readonly samples="$root/deploy/samples"
readonly component=lifecycle-manager

case "${1:-}" in
  "") ;;
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
    [[ -s $work/log ]] && { echo "Last words of runtime-watcher:"; tail -n 15 "$work/log"; } >&2
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
  local tries=$(($1 * 50)) what=$2
  shift 2
  until "$@"; do
    kill -0 "$dev" 2>/dev/null || die "runtime-watcher ended while waiting for: $what"
    ((tries-- > 0)) || die "gave up waiting for: $what"
    sleep 0.02
  done
}

port_of() {
  sed -nE '/"msg": ?"listening"/{/"server": ?"'"$1"'"/s/.*"address": ?"[^"]*:([0-9]+)".*/\1/p}' "$work/log"
}
listening() { [[ -n $(port_of "$1") ]]; }
arrived() { (($(wc -l <"$work/events") >= $1)); }
# An event line as the samples' table writes it.
brief() { sed -E 's/.*"namespace": ?"([^"]*)", ?"name": ?"([^"]*)".*"kind": ?"([^"]*)".*/\3 \1\/\2/' <<<"$1"; }

step "Packages"
"$root/deploy/install-packages.sh" build

step "Build (some minutes the first time)"
cd "$root"
cmake --preset release >/dev/null
cmake --build --preset release --target runtime-watcher

step "Start: runtime-watcher dev"
work="$(mktemp -d)"
: >"$work/events"
"$binary" dev --dir "$work/pki" --webhook-port 0 --metrics-port 0 --listen-port 0 --component "$component" \
  >"$work/events" 2>"$work/log" &
dev=$!
wait_for 10 "the webhook to listen" listening webhook
url="https://127.0.0.1:$(port_of webhook)/validate/$component"
echo "webhook: $url"

step "Post the recorded AdmissionReviews"
expected=0
while IFS='|' read -r _ file what event _; do
  read -r file <<<"$file"  # without the blanks around it
  read -r what <<<"${what//\`/}"
  read -r event <<<"$event"
  answer="$(curl --silent --show-error --fail --max-time 10 --tlsv1.3 --cacert "$work/pki/ca.crt" \
    --header 'Content-Type: application/json' --data-binary "@$samples/$file" "$url")" || die "posting $file failed"
  grep -q '"allowed": *true' <<<"$answer" || die "$file was not allowed: $answer"
  if [[ $event == none ]]; then
    printf '  %-75s no event\n' "$what"
    continue
  fi
  wait_for 5 "the event of $file" arrived $((++expected))
  line="$(sed -n "${expected}p" "$work/events")"
  [[ $(brief "$line") == "$event" ]] || die "$file should cause an event for $event, and this came: $line"
  printf '  %-75s %s\n' "$what" "$event"
done < <(grep -E '^\| [0-9]+-' "$samples/README.md")
((expected > 0)) || die "the table in deploy/samples/README.md names no sample"
echo "one of them in full: $line"

step "Stop"
kill -TERM "$dev"
code=0
wait "$dev" || code=$?
dev=
((code == 0)) || die "runtime-watcher ended with $code"
count="$(wc -l <"$work/events")"
((count == expected)) || die "$expected events were expected and $count came: $(<"$work/events")"
step "Done: exactly the $expected expected events arrived."

cat <<NEXT

Next:
  build/runtime-watcher dev --dir pki        the same, and it stays: post reviews of your own to it
  build/runtime-watcher webhook --help       the webhook with every option and environment variable
  build/runtime-watcher listen --help        the receiving side, behind a gateway or terminating mutual TLS itself
  tests/run.sh                               all tests, against a real API server too (tests/run.sh --fast without)
NEXT
