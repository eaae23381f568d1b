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

{{- /* The number that a quantity is, as a text. */}}
{{- define "runtime-watcher.quantity" -}}
{{- $text := toString . }}
{{- $number := regexFind "^[0-9.]+([eE][-+]?[0-9]+)?" $text }}
{{- $factors := dict "n" 1e-9 "u" 1e-6 "m" 1e-3 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18
  "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 "Ei" 1152921504606846976.0 }}
{{- mulf (float64 $number) (get $factors (trimPrefix $number $text) | default 1.0) }}
{{- end }}

{{- /* Ends with the name of a limit that is below the request of the same resource: no API server takes such a pod. */}}
{{- define "runtime-watcher.limits" -}}
{{- $requests := .requests | default dict }}
{{- $names := .names | default dict }}
{{- range $resource, $limit := .limits | default dict }}
{{- $request := get $requests $resource }}
{{- if not (or (kindIs "invalid" $limit) (kindIs "invalid" $request) (not (hasKey $requests $resource))) }}
{{- if lt (include "runtime-watcher.quantity" $limit | float64) (include "runtime-watcher.quantity" $request | float64) }}
{{- fail (printf "%s: %v is below the request, %v" (get $names $resource | default (printf "resources.limits.%s" $resource)) $limit $request) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Resources of a container, without those that are null: an API server would read them as 0. */}}
{{- define "runtime-watcher.resources" -}}
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
