package observe

// Configured is a configuration that is in force now. Only its generation is a metric, under its name and origin.
type Configured struct {
	Name, Origin string
	Generation   int64
}

func (e Configured) report(o *Observer) {
	o.metrics.generation.Reset()
	o.metrics.generation.WithLabelValues(e.Name, e.Origin).Set(float64(e.Generation))
}
