#!/usr/bin/env bash
# Sends a first event to a listener on this machine, in the place of a gateway that has verified the sender.
#
#   deploy/examples/first-event.sh PORT [RUNTIME-WATCHER]
#
# Makes a certificate of the runtime runtime-1, which goes with the event as a gateway would forward it. RUNTIME-WATCHER is
# the program, by default the one in the PATH. Prints the status: 200 if the event is accepted.
set -euo pipefail
case "${1:-}" in
  "" | -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
esac
port=$1
runtime_watcher="${2:-runtime-watcher}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
"$runtime_watcher" certs ca --dir "$work" --cn ca >/dev/null
"$runtime_watcher" certs webhook --dir "$work" --name runtime --cn runtime-1 --san dns:localhost >/dev/null
certificate="$(python3 -c 'import sys, urllib.parse; print(urllib.parse.quote(open(sys.argv[1]).read(), safe=""))' "$work/runtime.crt")"
curl --noproxy "*" --silent --show-error --max-time 10 --output /dev/null --write-out '%{http_code}\n' \
  --header "X-Forwarded-Client-Cert: Cert=$certificate" --header 'Content-Type: application/json' \
  --data '{"watched":{"Namespace":"kyma-system","Name":"default"},"watchedGvk":{"group":"operator.kyma-project.io","version":"v1beta2","kind":"Kyma"}}' \
  "http://127.0.0.1:$port/v2/lifecycle-manager/event"
