// Package observe checks what shows pod-pacemaker to people, the alert rules and
// the Grafana dashboard of deploy, with Prometheus' own parser against the table
// of metrics in deploy/metrics.md, which the tests of package plugin check against
// the registry.
package observe
