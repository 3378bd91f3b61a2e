{{- define "pod-pacemaker.name" -}}
{{- .Values.nameOverride | default "pod-pacemaker" -}}
{{- end -}}

{{- define "pod-pacemaker.fullname" -}}
{{- $name := include "pod-pacemaker.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 53 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 53 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- /* Rejects combinations of values that cannot work. It renders no text. */ -}}
{{- define "pod-pacemaker.refusals" -}}
{{- if not .Values.image.repository -}}
{{- fail "image.repository: say where your nodes find the image, like --set image.repository=registry.example/pod-pacemaker (deploy/install.md says how to build it)" -}}
{{- end -}}
{{- if not .Values.metricsProxy.enabled -}}
{{- range $name, $asked := dict "podMonitor" .Values.podMonitor "prometheusRule" .Values.prometheusRule -}}
{{- if $asked.enabled -}}
{{- fail (printf "%s.enabled: Prometheus cannot reach 127.0.0.1 of the nodes, so it would never get data: set metricsProxy.enabled, or leave %s.enabled off" $name $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.metricsProxy.why (not .Values.metricsProxy.enabled) -}}
{{- fail "metricsProxy.why: needs metricsProxy.enabled, because the proxy answers the questions" -}}
{{- end -}}
{{- if and .Values.metricsProxy.enabled (eq (int .Values.metricsProxy.port) (int .Values.http.port)) -}}
{{- fail "metricsProxy.port: is the same as http.port" -}}
{{- end -}}
{{- if not (has (toString (((.Values.updateStrategy).rollingUpdate).maxSurge | default 0)) (list "0" "0%")) -}}
{{- fail "updateStrategy.rollingUpdate.maxSurge: two daemons cannot have the same port of a node, so no upgrade would end: set maxUnavailable" -}}
{{- end -}}
{{- range $field := list "nodeSelector" "instance" "priority" -}}
{{- if get ($.Values.defaultConfig | default dict) $field -}}
{{- fail (printf "defaultConfig.%s: has no effect in the file that the daemons read, which applies to every node: create a PacemakerConfig object" $field) -}}
{{- end -}}
{{- end -}}
{{- if not (regexMatch "^(|1h|(60|[1-5][0-9]|[1-9])m|([1-5][0-9]|[1-9])m[1-5]?[0-9]s|(3600|3[0-5][0-9]{2}|[12][0-9]{3}|[1-9][0-9]{0,2})s)$" (.Values.gate.timeout | default "")) -}}
{{- fail (printf "gate.timeout: %s: must be from 1s to 1h, like 100s or 12m, and less than kubelet's runtimeRequestTimeout" .Values.gate.timeout) -}}
{{- end -}}
{{- if and .Values.instance (has (toString .Values.waitingRoom.mode) (list "on" "true")) -}}
{{- fail "waitingRoom.mode: on needs a release without an instance: a node has one waiting room, so only that daemon may install it" -}}
{{- end -}}
{{- if and .Values.startupTaint.enabled (semverCompare "<1.30.0-0" .Capabilities.KubeVersion.Version) -}}
{{- fail "startupTaint.enabled: needs Kubernetes 1.30 or later, for the policy that limits each daemon to its own node and to this taint" -}}
{{- end -}}
{{- end -}}

{{- /* The labels by which the daemons' pods are selected. They must not change. */ -}}
{{- define "pod-pacemaker.selector" -}}
app.kubernetes.io/name: pod-pacemaker
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "pod-pacemaker.labels" -}}
{{ include "pod-pacemaker.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "pod-pacemaker.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- /* The daemon runs on Linux alone. The value may say so as well. */ -}}
{{- define "pod-pacemaker.nodeSelector" -}}
{{- merge (dict "kubernetes.io/os" "linux") (.Values.nodeSelector | default dict) | toYaml -}}
{{- end -}}

{{- /* What pods tolerate that the scheduler places. A toleration without a key is not for them: with it, they could come
       to a node that is off, and wait there for ever. */ -}}
{{- define "pod-pacemaker.jobTolerations" -}}
{{- $own := list (dict "key" "node-role.kubernetes.io/control-plane" "operator" "Exists") -}}
{{- range .Values.tolerations -}}
{{- if .key -}}
{{- $own = append $own . -}}
{{- end -}}
{{- end -}}
{{- $own | toYaml -}}
{{- end -}}

{{- /* The PacemakerConfig of the values, which the daemon reads from a file. */ -}}
{{- define "pod-pacemaker.defaultConfig" -}}
apiVersion: pod-pacemaker.io/v1alpha1
kind: PacemakerConfig
metadata:
  name: {{ include "pod-pacemaker.fullname" . }}
spec:
  {{- toYaml .Values.defaultConfig | nindent 2 }}
{{- end -}}

{{- /* Binds the cluster role FULLNAME-name to the daemon's service account. */ -}}
{{- define "pod-pacemaker.binding" -}}
{{- $name := include "pod-pacemaker.fullname" .top }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}-{{ .name }}
  labels:
    {{- include "pod-pacemaker.labels" .top | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}-{{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ $name }}
    namespace: {{ .top.Release.Namespace }}
{{- end -}}

{{- /* Not empty where policies are to keep each daemon to its own node. Both that kind of object and the node's name in the
tokens of pods are there by default from 1.30 on. */ -}}
{{- define "pod-pacemaker.ownNode" -}}
{{- if eq (toString .Values.ownNode.policy) "auto" -}}
{{- if semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version -}}yes{{- end -}}
{{- else if .Values.ownNode.policy -}}yes{{- end -}}
{{- end -}}

{{- /* The node that the token of a request names, in CEL; '' where it names none. */ -}}
{{- define "pod-pacemaker.nodeOfToken" -}}
has(request.userInfo.extra) && 'authentication.kubernetes.io/node-name' in request.userInfo.extra &&
size(request.userInfo.extra['authentication.kubernetes.io/node-name']) == 1 ?
request.userInfo.extra['authentication.kubernetes.io/node-name'][0] : ''
{{- end -}}

{{- /* An init container that finds kubelet's configuration. A pod cannot mount a file that only some nodes have, so this
container sees all files of the host for a moment, and leaves the daemon a copy of one. */ -}}
{{- define "pod-pacemaker.kubeletConfig" -}}
- name: kubelet-config
  image: {{ include "pod-pacemaker.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args:
    - copy-kubelet-config
    - --to=/kubelet/config.yaml
    {{- range .Values.kubeletConfig }}
    - /host{{ . }}
    {{- end }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
  resources:
    requests: {cpu: 10m, memory: 32Mi}
    limits: {memory: 128Mi}
  volumeMounts:
    - {name: host, mountPath: /host, readOnly: true}
    - {name: kubelet-config, mountPath: /kubelet}
{{- end -}}

{{- /* When the waiting room is installed: auto, on or off. YAML reads on and off without quotes as true and false. A daemon
       with an instance has none. */ -}}
{{- define "pod-pacemaker.room" -}}
{{- $mode := get (dict "true" "on" "false" "off") (toString .Values.waitingRoom.mode) | default .Values.waitingRoom.mode -}}
{{- if .Values.instance -}}{{- $mode = "off" -}}{{- end -}}
{{- $mode -}}
{{- end -}}

{{- /* yes where the proxy of the metrics answers why a pod waits. */ -}}
{{- define "pod-pacemaker.why" -}}
{{- if and .Values.metricsProxy.enabled .Values.metricsProxy.why -}}yes{{- end -}}
{{- end -}}

{{- /* The mounts and volumes of the default config, and those of the values. */ -}}
{{- define "pod-pacemaker.extraMounts" -}}
{{- if .Values.defaultConfig }}
- {name: default-config, mountPath: /etc/pod-pacemaker, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}
{{- define "pod-pacemaker.extraVolumes" -}}
{{- if .Values.defaultConfig }}
- {name: default-config, configMap: {name: {{ include "pod-pacemaker.fullname" . }}-default-config}}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* The flags of the daemon; preflight checks the same flags. */ -}}
{{- define "pod-pacemaker.flags" -}}
- --nri-socket={{ .Values.nri.socket }}
{{- if ne .Values.nri.index "05" }}
- --nri-index={{ .Values.nri.index }}
{{- end }}
{{- if ne .Values.containerd.state "/run/containerd" }}
- --containerd-state={{ .Values.containerd.state }}
{{- end }}
{{- with .Values.instance }}
- --instance={{ . }}
{{- end }}
{{- if .Values.defaultConfig }}
- --config=/etc/pod-pacemaker/config.yaml
{{- end }}
- --run-dir={{ .Values.paths.run }}
- --state-dir={{ .Values.paths.state }}
- --proc-root=/host/proc
- --gate-path={{ .Values.paths.gate }}/pacemaker-gate
{{- if ne .Values.gate.mode "auto" }}
- --gate={{ .Values.gate.mode }}
{{- end }}
{{- with .Values.gate.timeout }}
- --gate-timeout={{ . }}
{{- end }}
{{- if ne .Values.refuseAt "auto" }}
- --refuse-at={{ .Values.refuseAt }}
{{- end }}
{{- if .Values.kubeletConfig }}
- --kubelet-config=/kubelet/config.yaml
{{- end }}
- --cni={{ include "pod-pacemaker.room" . }}
{{- if ne (include "pod-pacemaker.room" .) "off" }}
- --cni-conf-dir={{ .Values.waitingRoom.confDir }}
- --cni-bin-dir={{ .Values.waitingRoom.binDir }}
{{- end }}
- --daemonset=$(POD_NAMESPACE)/{{ include "pod-pacemaker.fullname" . }}
{{- if .Values.startupTaint.enabled }}
- --startup-taint={{ .Values.startupTaint.key }}
{{- end }}
- --http=127.0.0.1:{{ .Values.http.port }}
{{- if ne .Values.log.level "info" }}
- --log-level={{ .Values.log.level }}
{{- end }}
- --log-format={{ .Values.log.format }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}
