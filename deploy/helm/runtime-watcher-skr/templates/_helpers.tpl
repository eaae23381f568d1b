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
