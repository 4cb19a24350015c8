{{- define "headrace.labels" -}}
app.kubernetes.io/name: headrace
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "headrace.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "headrace.mediaImage" -}}
{{ include "headrace.image" . }}{{ .Values.image.mediaSuffix }}
{{- end -}}

{{- /* Processes read their settings when they start: other settings take other pods. */ -}}
{{- define "headrace.annotations" -}}
checksum/settings: {{ .Values.settings | toYaml | sha256sum | quote }}
{{- if .Values.podAnnotations }}
{{ .Values.podAnnotations | toYaml }}
{{- end }}
{{- end -}}

{{- /* What every pod has: who it is, what it may not do. */ -}}
{{- define "headrace.pod" -}}
serviceAccountName: {{ .Release.Name }}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile:
    type: RuntimeDefault
nodeSelector:
  {{- .Values.nodeSelector | toYaml | nindent 2 }}
tolerations:
  {{- .Values.tolerations | toYaml | nindent 2 }}
volumes:
  - name: secrets
    projected:
      sources:
        - secret:
            name: {{ .Values.existingSecret }}
  - name: tmp
    emptyDir: {}
  - name: data
    {{- if .Values.sharedVolume.existingClaim }}
    persistentVolumeClaim:
      claimName: {{ .Values.sharedVolume.existingClaim }}
    {{- else }}
    emptyDir: {}
    {{- end }}
{{- end -}}

{{- define "headrace.container" -}}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
envFrom:
  - configMapRef:
      name: {{ .Release.Name }}
volumeMounts:
  - name: secrets
    mountPath: /run/secrets/headrace
    readOnly: true
  - name: tmp
    mountPath: /tmp
  - name: data
    mountPath: /var/lib/headrace
{{- end -}}
