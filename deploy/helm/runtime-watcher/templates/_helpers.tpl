{{- define "runtime-watcher.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion }}
{{- if not (kindIs "string" $tag) }}{{ $tag = int64 $tag }}{{ end }}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ $tag }}{{ end }}
{{- end }}
{{- end }}

{{- /* Of the Deployment, the roles, the Lease and the Services. */}}
{{- define "runtime-watcher.name" -}}
{{ .Values.nameOverride | default "runtime-watcher-manager" }}
{{- end }}

{{- define "runtime-watcher.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "runtime-watcher.name" .) }}
{{- end }}

{{- define "runtime-watcher.labels" -}}
{{- $labels := dict "app.kubernetes.io/name" (include "runtime-watcher.name" .) "app.kubernetes.io/instance" .Release.Name
  "app.kubernetes.io/version" .Chart.AppVersion "app.kubernetes.io/managed-by" .Release.Service
  "helm.sh/chart" (printf "%s-%s" .Chart.Name (replace "+" "_" .Chart.Version)) }}
{{- toJson (merge $labels .Values.commonLabels) }}
{{- end }}

{{- /* The YAML documents of `text` with the names, labels and annotations that the values of `root` say. */}}
{{- define "runtime-watcher.objects" -}}
{{- $root := .root }}
{{- $account := include "runtime-watcher.serviceAccount" $root }}
{{- range splitList "\n---\n" .text }}
{{- $object := . | replace "runtime-watcher-manager" (include "runtime-watcher.name" $root) | fromYaml }}
{{- $labels := fromJson (include "runtime-watcher.labels" $root) }}
{{- $_ := set $object.metadata "labels" (merge $labels ($object.metadata.labels | default dict)) }}
{{- $annotations := $object.metadata.annotations | default dict }}
{{- $keep := eq $object.kind "Namespace" }}
{{- if eq $object.kind "CustomResourceDefinition" }}
{{- $keep = $root.Values.crds.keep }}
{{- else if eq $object.kind "ServiceAccount" }}
{{- $_ := set $object.metadata "name" $account }}
{{- $annotations = merge (dict) $root.Values.serviceAccount.annotations $annotations }}
{{- end }}
{{- if $keep }}
{{- $annotations = merge (dict "helm.sh/resource-policy" "keep") $annotations }}
{{- end }}
{{- if $annotations }}
{{- $_ := set $object.metadata "annotations" $annotations }}
{{- end }}
{{- range $object.subjects }}
{{- $_ := set . "name" $account }}
{{- end }}
{{- if or (ne $object.kind "ServiceAccount") $root.Values.serviceAccount.create }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
{{- end }}
