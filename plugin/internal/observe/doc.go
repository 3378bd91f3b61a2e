// Package observe reports what the daemon does: to the log, Prometheus, and Kubernetes
// events on pods and on the node.
//
// The other packages report to [Observer]: the events of the limiter ([Observer.Happened]), how pods wait, what
// handlers cost, and what failed. The collectors of this package read the rest, [Scraped], at each scrape.
// It decides nothing about pods. Only [Observer.Supervised] and a scrape may block.
package observe
