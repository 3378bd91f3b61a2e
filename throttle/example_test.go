package throttle_test

import (
	"fmt"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func Example() {
	now := time.Now()
	l := throttle.New(now, throttle.Settings{MaxConcurrent: 1})

	first := l.Join(now, throttle.Request{UID: "1", Name: "shop/cart"})
	fmt.Println("cart:", first.TryStart(now).Reason)

	second := l.Join(now, throttle.Request{UID: "2", Name: "shop/search"})
	second.Wait(now) // a process waits, until StopWaiting
	held := second.TryStart(now).Held
	fmt.Println("search:", held.Reason, held.Measured, "of", held.Threshold)

	first.End(now, reasons.Ready)
	<-second.Decided()
	state, reason := second.Status()
	fmt.Println("search:", state, reason)
	// Output:
	// cart: WithinLimits
	// search: Concurrency 1 of 1
	// search: Starting WithinLimits
}
