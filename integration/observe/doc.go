// Package observe checks the alert rules and the Grafana dashboard of deploy with Prometheus' own
// parser, against the table of metrics in deploy/metrics.md. The tests of package plugin check that
// table against the registry.
package observe
