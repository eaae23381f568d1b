{{- define "skr.managers" -}}
{{- $watches := list }}
{{- range .Values.watches }}
{{- $watches = append $watches (omit . "name") }}
{{- end }}
{{- toJson (dict "version" 1 "watches" $watches) }}
{{- end }}

{{- define "skr.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion }}
{{- if not (kindIs "string" $tag) }}{{ $tag = int64 $tag }}{{ end }}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ $tag }}{{ end }}
{{- end }}
{{- end }}

{{- define "skr.serviceAccount" -}}
{{ .Values.serviceAccount.name | default "skr-webhook" }}
{{- end }}

{{- /* Those of deploy/skr, and what charts have. */}}
{{- define "skr.labels" -}}
{{- $labels := dict "operator.kyma-project.io/managed-by" "kyma" "app.kubernetes.io/name" "skr-webhook"
  "app.kubernetes.io/instance" .Release.Name "app.kubernetes.io/version" .Chart.AppVersion
  "app.kubernetes.io/managed-by" .Release.Service "helm.sh/chart" (printf "%s-%s" .Chart.Name (replace "+" "_" .Chart.Version)) }}
{{- toJson (merge $labels .Values.commonLabels) }}
{{- end }}

{{- define "skr.object" -}}
---
{{- $labels := fromJson (include "skr.labels" .root) }}
{{- $_ := set .object.metadata "labels" (merge $labels .object.metadata.labels) }}
{{ toYaml .object }}
{{- end }}

{{- /* The number that a quantity is, as a text. */}}
{{- define "skr.quantity" -}}
{{- $text := toString . }}
{{- $number := regexFind "^[0-9.]+([eE][-+]?[0-9]+)?" $text }}
{{- $factors := dict "n" 1e-9 "u" 1e-6 "m" 1e-3 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18
  "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 "Ei" 1152921504606846976.0 }}
{{- mulf (float64 $number) (get $factors (trimPrefix $number $text) | default 1.0) }}
{{- end }}

{{- /* Ends with the name of a limit that is below the request of the same resource: no API server takes such a pod. */}}
{{- define "skr.limits" -}}
{{- $requests := .requests | default dict }}
{{- $names := .names | default dict }}
{{- range $resource, $limit := .limits | default dict }}
{{- $request := get $requests $resource }}
{{- if not (or (kindIs "invalid" $limit) (kindIs "invalid" $request) (not (hasKey $requests $resource))) }}
{{- if lt (include "skr.quantity" $limit | float64) (include "skr.quantity" $request | float64) }}
{{- fail (printf "%s: %v is below the request, %v" (get $names $resource | default (printf "resources.limits.%s" $resource)) $limit $request) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Of a duration of `environment`, as a text. */}}
{{- define "skr.milliseconds" -}}
{{- $sum := 0.0 }}
{{- range regexFindAll "[0-9.]+(ms|h|m|s)" . -1 }}
{{- $unit := regexFind "[a-z]+$" . }}
{{- $sum = addf $sum (mulf (trimSuffix $unit . | float64) (get (dict "ms" 1.0 "s" 1000.0 "m" 60000.0 "h" 3600000.0) $unit)) }}
{{- end }}
{{- $sum }}
{{- end }}

{{- /* What `runtime-watcher webhook` refuses at its start though each value has the right form, and what kubelet would cut off. */}}
{{- define "skr.check" -}}
{{- include "skr.limits" .Values.resources }}
{{- $of := merge (dict) .Values.environment (dict "CONFIRM_WAIT" "2s" "ADMISSION_WAIT" "0" "HEARTBEAT_INTERVAL" "0" "SHUTDOWN_DELAY" "5s" "DRAIN_TIMEOUT" "20s") }}
{{- if lt (include "skr.milliseconds" $of.CONFIRM_WAIT | float64) 1.0 }}
{{- fail "environment.CONFIRM_WAIT must be 1ms at least" }}
{{- end }}
{{- if gt (include "skr.milliseconds" $of.ADMISSION_WAIT | float64) 30000.0 }}
{{- fail "environment.ADMISSION_WAIT must be 30s at most" }}
{{- end }}
{{- $heartbeat := include "skr.milliseconds" $of.HEARTBEAT_INTERVAL | float64 }}
{{- if or (gt $heartbeat 3600000.0) (and (gt $heartbeat 0.0) (lt $heartbeat 1000.0)) }}
{{- fail "environment.HEARTBEAT_INTERVAL must be 0, or from 1s to 1h" }}
{{- end }}
{{- if gt (addf (include "skr.milliseconds" $of.SHUTDOWN_DELAY | float64) (include "skr.milliseconds" $of.DRAIN_TIMEOUT | float64)) 30000.0 }}
{{- fail "environment.SHUTDOWN_DELAY and environment.DRAIN_TIMEOUT must fit into the 30s that the pod has to end" }}
{{- end }}
{{- end }}

{{- /* Resources of a container, without those that are null: an API server would read them as 0. */}}
{{- define "skr.resources" -}}
{{- $out := dict }}
{{- range $kind, $amounts := . }}
{{- $kept := dict }}
{{- range $name, $amount := $amounts }}
{{- if not (kindIs "invalid" $amount) }}{{ $_ := set $kept $name $amount }}{{ end }}
{{- end }}
{{- $_ := set $out $kind $kept }}
{{- end }}
{{- toJson $out }}
{{- end }}
