{{- define "skr.managers" -}}
{{- $watches := list }}
{{- range .Values.watches }}
{{- $watches = append $watches (omit . "name") }}
{{- end }}
{{- toJson (dict "version" 1 "watches" $watches) }}
{{- end }}
