// Command herd is a pod of a herd: a program that, like a JVM, burns CPU before it is ready. Until
// then it does not listen, so every probe is refused.
//
// It logs one line when it starts and one when it is ready, each with the time in nanoseconds since
// the epoch: "started 1700000000000000000".
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	fmt.Println("started", time.Now().UnixNano())
	// As PID 1, the process has to handle SIGTERM itself.
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		for range terminate {
			if !stubborn.Load() {
				os.Exit(0)
			}
		}
	}()
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "herd:", err)
		os.Exit(2)
	}
}

// stubborn makes the program ignore SIGTERM.
var stubborn atomic.Bool

func run(args []string) error {
	flags := flag.NewFlagSet("herd", flag.ContinueOnError)
	burn := flags.Float64("cpu-seconds", 4, "CPU time to use before being ready, seconds")
	port := flags.Int("port", 8080, "TCP port to answer HTTP on when ready; 0 listens nowhere")
	wait := flags.Duration("wait", 0, "time to wait, without CPU, before the burning")
	sleep := flags.Duration("sleep", 0, "time to wait, without CPU, after the burning and before being ready")
	until := flags.String("until", "", "path of a file that must exist before this is ready; checked ten times a second")
	needs := flags.String("wait-for", "", "TCP address, host:port, that must accept a connection before this is ready; tried twice a second")
	serve := flags.Float64("serve-cores", 0, "CPUs to use once ready, 0 to 1, as a pod that serves does")
	answer := flags.Duration("answer", 0, "CPU time that each HTTP answer takes")
	thrash := flags.Int("thrash-mib", 0, "size of a file to read over and over once ready; with less memory than that, the node stalls for memory")
	marks := flags.String("marks", "", "path of a file to make right before this is ready")
	without := flags.String("fails-without", "", "path of a file that must exist when this starts; without it, this ends with exit code 1")
	exit := flags.Int("exit", -1, "exit code to end with instead of becoming ready; -1 becomes ready")
	lives := flags.String("lives", "", "path of a file in which this counts how often it was started, for --crashes and --hangs")
	crashes := flags.Int("crashes", 0, "number of lives that end with exit code 1 in the middle of --sleep")
	hangs := flags.Int("hangs", 0, "number of lives that never get ready")
	ends := flags.Duration("ends", 0, "time after which this ends with exit code 0, ready or not; 0 never")
	done := flags.Bool("done", false, "end with exit code 0 when ready, as a Job does")
	flags.BoolFunc("ignore-term", "ignore SIGTERM, and run until killed", func(string) error { stubborn.Store(true); return nil })
	if err := fromEnvironment(flags); err != nil {
		return err
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *serve < 0 || *serve > 1 {
		return fmt.Errorf("--serve-cores %g: expected 0 to 1", *serve)
	}
	if *without != "" {
		if _, err := os.Stat(*without); err != nil {
			os.Exit(1)
		}
	}
	if *ends > 0 {
		time.AfterFunc(*ends, func() { os.Exit(0) })
	}
	if *lives != "" {
		life, err := countLife(*lives)
		switch {
		case err != nil:
			return err
		case life <= *hangs:
			select {}
		case life <= *crashes:
			time.Sleep(*sleep / 2)
			os.Exit(1)
		}
	}
	time.Sleep(*wait)
	if err := burnCPU(time.Duration(*burn * float64(time.Second))); err != nil {
		return err
	}
	time.Sleep(*sleep)
	if *until != "" {
		appears(*until)
	}
	if *needs != "" {
		waitFor(*needs)
	}
	if *marks != "" {
		if err := os.WriteFile(*marks, nil, 0o600); err != nil {
			return err
		}
	}
	if *exit >= 0 {
		os.Exit(*exit)
	}
	if *serve > 0 && !*done {
		go use(*serve)
	}
	if *thrash > 0 {
		if err := thrashMemory(*thrash); err != nil {
			return err
		}
	}
	return ready(*port, *answer, *done)
}

// countLife adds a byte to a file and returns how many it has.
func countLife(path string) (lives int, err error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fmt.Errorf("the number of lives: %w", err)
	}
	defer file.Close()
	if _, err := file.Write([]byte{'.'}); err != nil {
		return 0, fmt.Errorf("the number of lives: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return 0, fmt.Errorf("the number of lives: %w", err)
	}
	return int(info.Size()), nil
}

// appears returns once there is a file at the path.
func appears(path string) {
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// waitFor returns once a server listens at the address. It simulates a program that needs a
// database.
func waitFor(address string) {
	dialer := net.Dialer{Timeout: time.Second}
	for {
		conn, err := dialer.DialContext(context.Background(), "tcp", address)
		if err == nil {
			_ = conn.Close() // nothing was sent
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// ready logs that the program is ready, and serves until the process is ended. Each answer takes CPU time.
func ready(port int, answer time.Duration, done bool) error {
	if done || port == 0 {
		fmt.Println("ready", time.Now().UnixNano())
		if done {
			return nil
		}
		select {}
	}
	listener, err := net.Listen("tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return err
	}
	fmt.Println("ready", time.Now().UnixNano())
	server := http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if err := work(answer); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			fmt.Fprintln(w, "ready")
		}),
	}
	return server.Serve(listener)
}

// burnCPU keeps one thread busy until the process has used that much processor time.
func burnCPU(budget time.Duration) error { return burn(cpuTime, budget) }

// work keeps one thread busy until that thread has used that much more processor time.
func work(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used, err := threadTime()
	if err != nil {
		return err
	}
	return burn(threadTime, used+d)
}

// burn keeps one thread busy until the time that clock shows has come.
func burn(clock func() (time.Duration, error), budget time.Duration) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		used, err := clock()
		if err != nil || used >= budget {
			return err
		}
		x := sink.Load()
		for i := range 1 << 18 {
			x = x*31 + uint64(i)
		}
		sink.Store(x)
	}
}

// usePeriod is how often use works and pauses.
const usePeriod = 20 * time.Millisecond

// use takes that share of one CPU, for ever. It works for a part of each period, by its CPU time
// and not by the clock.
func use(share float64) {
	for {
		begin := time.Now()
		used, err := cpuTime()
		if err == nil {
			err = burnCPU(used + time.Duration(share*float64(usePeriod)))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "herd:", err)
			return
		}
		time.Sleep(time.Until(begin.Add(usePeriod)))
	}
}

// thrashers is how many goroutines read at a time: some wait for memory while others continue.
const thrashers = 4

// thrashMemory writes a file of mib MiB and reads it for ever. If less memory is allowed, each page
// is evicted before it is read again.
func thrashMemory(mib int) error {
	const name = "/thrash"
	file, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("what to read: %w", err)
	}
	defer file.Close()
	for range mib {
		if _, err := file.Write(make([]byte, 1<<20)); err != nil {
			return fmt.Errorf("writing what to read: %w", err)
		}
	}
	for range thrashers {
		go func() {
			for {
				if err := readAll(name); err != nil {
					fmt.Fprintln(os.Stderr, "herd:", err)
					return
				}
			}
		}()
	}
	return nil
}

func readAll(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(io.Discard, file)
	return err
}

// sink keeps the compiler from dropping the loop.
var sink atomic.Uint64

// cpuTime returns the processor time that the process has used.
func cpuTime() (time.Duration, error) { return usedBy(syscall.RUSAGE_SELF) }

// threadTime returns the processor time that the calling thread has used.
func threadTime() (time.Duration, error) { return usedBy(syscall.RUSAGE_THREAD) }

func usedBy(who int) (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(who, &usage); err != nil {
		return 0, fmt.Errorf("reading the CPU time used: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// fromEnvironment sets flags from variables, for example --cpu-seconds from HERD_CPU_SECONDS. The
// command line overrides them.
func fromEnvironment(flags *flag.FlagSet) (err error) {
	flags.VisitAll(func(f *flag.Flag) {
		variable := "HERD_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, set := os.LookupEnv(variable)
		if !set || err != nil {
			return
		}
		if e := f.Value.Set(value); e != nil {
			err = fmt.Errorf("environment variable %s: %w", variable, e)
		}
	})
	return err
}
