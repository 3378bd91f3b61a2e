package crd

import "sync"

// signal is something that happens once.
type signal struct {
	once *sync.Once
	c    chan struct{}
}

func newSignal() signal { return signal{once: new(sync.Once), c: make(chan struct{})} }

func (s signal) set() { s.once.Do(func() { close(s.c) }) }

// done is closed once it has happened.
func (s signal) done() <-chan struct{} { return s.c }
