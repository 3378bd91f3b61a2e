// Package observe reports what the daemon does: to the log, Prometheus, and Kubernetes
// events on pods and on the node.
//
// [Observer] takes one stream: what happened to starts ([Observer.Happened]), how pods wait, what
// handlers cost, what failed. The collectors in this package ask at the moment of a scrape for
// what no event tells. Nothing here decides anything, blocks, or calls back.
package observe
