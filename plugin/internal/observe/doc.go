// Package observe reports what the daemon does: to the log, Prometheus, and Kubernetes
// events on pods and on the node.
//
// The other packages report to [Observer]: the events of the limiter ([Observer.Happened]), how pods wait, what
// handlers cost, and what failed. The collectors of this package read the rest, [Scraped], at each scrape.
// Nothing here makes decisions, blocks, or calls the reporting package.
package observe
