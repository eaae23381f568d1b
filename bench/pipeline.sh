#!/usr/bin/env bash
# What a review costs the webhook, against nginx that answers the same requests with a constant, in turns
# within one run; with --before, also against another build of the webhook. Prints one line of JSON for each
# figure. CPU is that of the server's process alone. Ends with 1 if a limit is missed.
#
#   bench/pipeline.sh [--seconds N] [--rounds N] [--connections N] [--binary PATH] [--before PATH]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
binary=$here/../build/runtime-watcher
seconds=4
rounds=3
connections=32
before=
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=$2; shift 2 ;;
    --rounds) rounds=$2; shift 2 ;;
    --connections) connections=$2; shift 2 ;;
    --binary) binary=$2; shift 2 ;;
    --before) before=$2; shift 2 ;;
    *) sed -n '2,7s/^# \{0,1\}//p' "$0"; [ "$1" = --help ] && exit 0 || exit 2 ;;
  esac
done
for each in "$binary" "${before:-$binary}"; do
  [ -x "$each" ] || { echo "bench/pipeline.sh: no binary at $each; build it first" >&2; exit 1; }
done
for tool in wrk h2load nginx python3 curl; do
  command -v "$tool" >/dev/null || { echo "bench/pipeline.sh: $tool is missing" >&2; exit 1; }
done

dir=$(mktemp -d)
pids=()
finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  [ ! -e "$dir/nginx.pid" ] || kill "$(cat "$dir/nginx.pid")" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$dir"
}
trap finish EXIT

"$binary" certs ca --dir "$dir" >/dev/null
"$binary" certs webhook --dir "$dir" --name webhook --cn bench --san dns:localhost,ip:127.0.0.1 >/dev/null
"$binary" certs server --dir "$dir" --name gateway --san dns:localhost,ip:127.0.0.1 >/dev/null
export RW_REVIEW=$here/data/label-change.json

port_of() {  # LOG SERVER: the port that a server says it listens on
  local port=
  for _ in $(seq 100); do
    port=$(sed -n "s/.*\"server\":\"$2\",\"address\":\"[^\"]*:\([0-9]*\)\".*/\1/p" "$1")
    [ -n "$port" ] && { echo "$port"; return; }
    read -rt 0.05 <> <(:) || true
  done
  echo "bench/pipeline.sh: $2 did not start" >&2
  cat "$1" >&2
  exit 1
}

"$binary" listen --address 127.0.0.1:0 --component bench --tls-cert "$dir/gateway.crt" \
  --tls-key "$dir/gateway.key" --client-ca "$dir/ca.crt" >/dev/null 2>"$dir/listen.log" &
pids+=($!)
upstream=$(port_of "$dir/listen.log" listener)

# Time from exec to the first readyz that says 200, the best of five.
ready_ms=$(python3 - "$binary" "$dir" "$upstream" <<'PY'
import http.client, json, subprocess, sys, time
binary, folder, upstream = sys.argv[1:]
best = 1e9
for _ in range(5):
    begin = time.monotonic()
    run = subprocess.Popen([binary, "webhook", "--webhook-port=0", "--metrics-port=0",
                            "--bind-address=127.0.0.1", f"--ca-cert={folder}/ca.crt",
                            f"--tls-cert={folder}/webhook.crt", f"--tls-key={folder}/webhook.key",
                            f"--kcp-addr=127.0.0.1:{upstream}", "--kcp-contract=v2"],
                           stderr=subprocess.PIPE, text=True)
    for line in run.stderr:
        entry = json.loads(line)
        if entry.get("server") == "admin":
            break
    connection = http.client.HTTPConnection("127.0.0.1", int(entry["address"].rsplit(":")[-1]))
    while True:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        answer.read()
        if answer.status == 200:
            break
    best = min(best, time.monotonic() - begin)
    run.terminate()
    run.communicate()
print(round(best * 1000, 1))
PY
)

start_webhook() {  # NAME PORT [BINARY]: one that sends its events to that port; sets $webhook
  "${3:-$binary}" webhook --webhook-port 0 --metrics-port 0 --bind-address 127.0.0.1 \
    --ca-cert "$dir/ca.crt" --tls-cert "$dir/webhook.crt" --tls-key "$dir/webhook.key" \
    --kcp-addr "127.0.0.1:$2" --kcp-contract v2 --set-capacity 4000000 2>"$dir/$1.log" &
  webhook=$!
  pids+=("$webhook")
  curl -fsS --retry 20 --retry-connrefused --retry-delay 0 \
    "http://127.0.0.1:$(port_of "$dir/$1.log" admin)/readyz" >/dev/null
}
url_of() { echo "https://127.0.0.1:$(port_of "$dir/$1.log" webhook)/validate/bench"; }
metric_of() {  # NAME PATTERN
  curl -fsS "http://127.0.0.1:$(port_of "$dir/$1.log" admin)/metrics" | awk "/$2/"'{sum += $2} END {print sum + 0}'
}
drain() {  # NAME: waits until all that it accepted is delivered
  for _ in $(seq 600); do
    [ "$(metric_of "$1" '^rw_(dispatch_undelivered_events[{]|observation_waiting_reviews )')" != 0 ] || return 0
    read -rt 0.1 <> <(:) || true
  done
  echo "bench/pipeline.sh: $1 still has events after a minute" >&2
  exit 1
}

"$binary" listen --address 127.0.0.1:0 --component bench >/dev/null 2>"$dir/listen_plain.log" &
pids+=($!)
plain=$(port_of "$dir/listen_plain.log" listener)
free_port() { python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])'; }
peer_port=$(free_port)
gateway_port=$(free_port)
cat >"$dir/nginx.conf" <<NGINX
worker_processes 1;
pid $dir/nginx.pid;
error_log $dir/nginx.log;
events { worker_connections 1024; }
http {
  access_log off;
  ssl_protocols TLSv1.3;
  upstream listener {
    server 127.0.0.1:$plain;
    keepalive 64;
    keepalive_requests 100000000;
  }
  client_body_temp_path $dir/body;
  proxy_temp_path $dir/proxy; fastcgi_temp_path $dir/fastcgi; uwsgi_temp_path $dir/uwsgi; scgi_temp_path $dir/scgi;
  server {
    listen 127.0.0.1:$peer_port ssl;
    ssl_certificate $dir/webhook.crt;
    ssl_certificate_key $dir/webhook.key;
    keepalive_requests 100000000;
    client_body_buffer_size 64k;
    location / {
      default_type application/json;
      return 200 '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","allowed":true,"status":{"metadata":{},"status":"Success","message":"no relevant change"}}}';
    }
  }
  # A gateway as every landscape has one, in front of a listener that takes one event in each request.
  server {
    listen 127.0.0.1:$gateway_port ssl http2;
    ssl_certificate $dir/gateway.crt;
    ssl_certificate_key $dir/gateway.key;
    ssl_client_certificate $dir/ca.crt;
    ssl_verify_client on;
    keepalive_requests 100000000;
    location / {
      proxy_pass http://listener;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header X-Forwarded-Client-Cert "Cert=\$ssl_client_escaped_cert";
      proxy_hide_header watch-event-batch;
    }
  }
}
NGINX
nginx -p "$dir" -c "$dir/nginx.conf"
nginx_worker=$(pgrep -P "$(cat "$dir/nginx.pid")")

if [ -n "$before" ]; then
  start_webhook before_single "$gateway_port" "$before"
  before_single=$webhook
  start_webhook before "$upstream" "$before"
  before_batches=$webhook
fi
start_webhook webhook_single "$gateway_port"
single=$webhook
start_webhook webhook "$upstream"
url=$(url_of webhook)
rss() { awk '/VmRSS/{print $2/1024}' "/proc/$1/status"; }
idle_rss=$(rss "$webhook")

cpu() { awk '{print $14 + $15}' "/proc/$1/stat"; }
measure() {  # NAME PID COMMAND...: prints microseconds of CPU per request, and requests; NAME: webhook, or -
  local name=$1 pid=$2 begin end n
  shift 2
  begin=$(cpu "$pid")
  n=$("$@" 2>&1 | tee "$dir/load.log" | awk '/requests in/{print $1} /^requests:/{print $8}')
  [ "$name" = - ] || drain "$name"
  end=$(cpu "$pid")
  if grep -qE "Non-2xx|Socket errors|[1-9][0-9]* failed" "$dir/load.log"; then
    echo "bench/pipeline.sh: not all requests were answered well" >&2
    cat "$dir/load.log" >&2
    exit 1
  fi
  awk -v a="$begin" -v b="$end" -v n="$n" -v hz="$(getconf CLK_TCK)" 'BEGIN{print (b-a)*1e6/hz/n, n}'
}
# As an API server with many writers: a full handshake for each review. (wrk would resume its sessions.)
connect() {
  echo h2load --h1 -t1 "-c$((seconds * 400))" "-n$((seconds * 400))" -r8 --rate-period=20ms -d "$RW_REVIEW" \
    -H content-type:application/json "$1"
}
load() { echo wrk -t1 "-c$connections" "-d${seconds}s" -s "$here/data/$1.lua" "$2"; }

single_url=$(url_of webhook_single)
for round in $(seq "$rounds"); do
  echo "round $round of $rounds" >&2
  measure - "$nginx_worker" $(load same "https://127.0.0.1:$peer_port/") >>"$dir/nginx"
  measure webhook "$webhook" $(load same "$url") >>"$dir/same"
  measure webhook "$webhook" $(load distinct "$url") >>"$dir/distinct"
  [ -z "$before" ] || measure before "$before_batches" $(load distinct "$(url_of before)") >>"$dir/distinct_before"
  measure webhook "$webhook" h2load -t1 -c1 -m64 -n$((seconds * 15000)) -d "$RW_REVIEW" \
    -H 'content-type: application/json' "$url" >>"$dir/h2"
  measure webhook_single "$single" $(load distinct "$single_url") >>"$dir/single"
  [ -z "$before" ] || measure before_single "$before_single" $(load distinct "$(url_of before_single)") >>"$dir/single_before"
  measure - "$nginx_worker" $(connect "https://127.0.0.1:$peer_port/") >>"$dir/nginx_new"
  measure webhook "$webhook" $(connect "$url") >>"$dir/new"
done
rss "$single" >"$dir/rss"
[ -z "$before" ] || rss "$before_single" >"$dir/rss_before"
delivered=$(metric_of webhook 'outcome="delivered"')
delivered_single=$(metric_of webhook_single 'outcome="delivered"')

PYTHONPATH=$here python3 -B - "$dir" "$seconds" "$connections" "$idle_rss" "$ready_ms" "$delivered" "$delivered_single" <<'PY'
import os, statistics, sys
from figures import missed, say
folder, seconds, connections, idle_rss, ready_ms, delivered, delivered_single = sys.argv[1:]
def rows(name):
    return [tuple(map(float, line.split())) for line in open(f"{folder}/{name}")]
def median(name, column=0):
    return statistics.median(row[column] for row in rows(name))
nginx, same = median("nginx"), median("same")
say("nginx_constant", nginx, "us of CPU")
def against_nginx(name, rows_of, limit):
    # Limits are those of 32 connections.
    say(name, median(rows_of), "us of CPU", "nginx, constant", peer_value=nginx, **({"ratio_limit": limit} if connections == "32" else {}))
against_nginx("review_without_event", "same", 1.1)
against_nginx("review_with_distinct_event", "distinct", 1.4)
against_nginx("review_with_event_single_http2", "single", 1.8)
if os.path.exists(f"{folder}/rss_before"):
    for name, of in (("review_with_distinct_event", "distinct"), ("review_with_event_single_http2", "single")):
        say(f"{name}_to_before", median(of), "us of CPU", "the build before", peer_value=median(f"{of}_before"))
    # Each has taken what the load brought in the same time.
    say("rss_after_events_single_http2_to_before", median("rss"), "MiB", "the build before", peer_value=median("rss_before"),
        **{f"events{suffix}": sum(row[1] for row in rows(f"single{suffix}")) for suffix in ("", "_before")})
say("review_without_event_http2", median("h2"), "us of CPU", "over HTTP/1.1", peer_value=same)
# With an ECDSA key.
say("new_connection_per_review", median("new"), "us of CPU", "nginx, new connections", peer_value=median("nginx_new"), ratio_limit=1.1)
say("reviews_per_second", median("same", 1) / float(seconds), "1/s", "nginx, constant", peer_value=median("nginx", 1) / float(seconds))
say("idle_rss", float(idle_rss), "MiB", limit=12)
say("rss_after_events_single_http2", median("rss"), "MiB")
say("ready_after", float(ready_ms), "ms", limit=50)
for name, count, of in (("events_delivered", delivered, "distinct"), ("events_delivered_single", delivered_single, "single")):
    reviews = sum(row[1] for row in rows(of))
    say(name, float(count), "events", "reviews", peer_value=reviews, at_least=reviews)
sys.exit(1 if missed else 0)
PY
