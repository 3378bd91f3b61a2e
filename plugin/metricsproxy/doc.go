// Package metricsproxy serves the metrics of a node's daemon to other hosts, by TLS, and to those alone whom the API
// server lets read them. It is what `pod-pacemaker metrics-proxy` runs: a process beside the daemon, which needs
// nothing of the node, so that nobody from outside talks to the daemon, which is root.
//
// A request brings a bearer token. A TokenReview tells whose it is, a SubjectAccessReview whether that user may get
// the non-resource URL /metrics. What the API server said counts for a minute, so that a scrape every few seconds costs
// it two requests a minute. Tokens that are not known cost it 10 reviews a second at most, whoever sends them.
//
// Whatever cannot be found out is refused.
package metricsproxy
