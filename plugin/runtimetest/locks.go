package runtimetest

import "sync"

// lock is a mutex. The runtime holds its locks while plugins answer, and a goroutine that waits for a sync.Mutex is not
// durably blocked for testing/synctest: the clock of its bubble would stand still. Make it with newLock.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

func (l lock) Lock()   { l <- struct{}{} }
func (l lock) Unlock() { <-l }

// sharedLock is a sync.RWMutex of that kind: who waits to take it alone keeps out those who want to share it. Make it
// with newSharedLock.
type sharedLock struct {
	changed *sync.Cond

	mu sync.Mutex
	// guarded by mu
	sharing, waiting int
	taken            bool
}

func newSharedLock() *sharedLock {
	l := &sharedLock{}
	l.changed = sync.NewCond(&l.mu)
	return l
}

// share takes the lock beside others. It returns what releases it.
func (l *sharedLock) share() (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.taken || l.waiting > 0 {
		l.changed.Wait()
	}
	l.sharing++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.sharing--
		l.changed.Broadcast()
	})
}

// take takes the lock alone. It returns what releases it.
func (l *sharedLock) take() (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting++
	for l.taken || l.sharing > 0 {
		l.changed.Wait()
	}
	l.waiting--
	l.taken = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.taken = false
		l.changed.Broadcast()
	}
}
