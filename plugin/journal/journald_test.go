package journal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/journal"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"go.uber.org/goleak"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/logqueue"
)

// stageVariable makes a copy of the test binary act, in folders of its own, as a machine with a journal.
const stageVariable = "POD_PACEMAKER_JOURNAL_STAGE"

func TestMain(m *testing.M) {
	if kind := os.Getenv(stageVariable); kind != "" {
		if err := stage(kind); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// Entries reach journald's socket in journald's own protocol. On a machine with journald they reach a real one, and
// journalctl prints them.
func TestJournalctlTellsOnePodsStory(t *testing.T) {
	t.Parallel()
	kinds := []string{"socket", "full"}
	if realJournald() {
		kinds = append(kinds, "journald")
	}
	t.Log("journals here:", kinds)
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			entries := onStage(t, kind)
			require.Len(t, entries, 2, "the entries of web-3, and of no other pod")
			for _, e := range entries {
				assert.Equal(t, "pod-pacemaker", e["SYSLOG_IDENTIFIER"])
				assert.Equal(t, "default", e["POD_NAMESPACE"])
				assert.Equal(t, "web-3", e["POD_NAME"])
				assert.Equal(t, "u-1", e["POD_UID"])
				assert.Equal(t, "c0ffee", e["CONTAINER_ID"])
			}
			assert.Equal(t, "start waits in the gate", entries[0]["MESSAGE"])
			assert.Equal(t, "3", entries[0]["PLACE"])
			assert.Equal(t, "Concurrency", entries[0]["REASON"])
			assert.Equal(t, "4", entries[0]["PRIORITY"])
			assert.Equal(t, "two\nlines", entries[0]["HELD"])
			assert.Equal(t, "start admitted", entries[1]["MESSAGE"])
			assert.Equal(t, "14200", entries[1]["WAIT_MS"])
			assert.Equal(t, "6", entries[1]["PRIORITY"])
		})
	}
}

// realJournald reports whether this machine has journald, and this process may run it.
func realJournald() bool {
	_, err := exec.LookPath("journalctl")
	id, unread := os.ReadFile("/etc/machine-id") // without a machine ID journald keeps no journal
	return err == nil && unread == nil && len(bytes.TrimSpace(id)) > 0 && journaldProgram() != "" && os.Geteuid() == 0
}

func journaldProgram() string {
	for _, path := range []string{"/usr/lib/systemd/systemd-journald", "/lib/systemd/systemd-journald"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// onStage returns the entries of the pod web-3 in the journal of a stage.
func onStage(t *testing.T, kind string) (entries []map[string]string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), stageVariable+"="+kind)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", stderr.String())
	for line := range strings.Lines(string(out)) {
		var e map[string]string
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
		entries = append(entries, e)
	}
	return entries
}

// stage acts as a machine with a journal, logs, and prints the entries of the journal.
func stage(kind string) error {
	// Only this process sees these mounts: the machine's own journal stays as it is.
	for _, dir := range []string{"/run", "/var/log"} {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
			return fmt.Errorf("a %s of its own: %w", dir, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return err
	}
	if kind == "journald" {
		return stageJournald()
	}
	listener, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer listener.Close()
	if kind == "full" {
		if err := speakToAFullQueue(); err != nil {
			return err
		}
	} else {
		speak()
	}
	for told := 0; told < 2; {
		datagram := make([]byte, 1<<16)
		if err := listener.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			return err
		}
		n, err := listener.Read(datagram)
		if err != nil {
			return err
		}
		entry, err := parseEntry(datagram[:n])
		if err != nil {
			return err
		}
		if entry["POD_NAME"] == "web-3" {
			told++
			if err := json.NewEncoder(os.Stdout).Encode(entry); err != nil {
				return err
			}
		}
	}
	return nil
}

// speakToAFullQueue fills journald's queue with entries of another program, logs, and returns when the log sleeps until
// there is room.
func speakToAFullQueue() error {
	other, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	for err == nil {
		err = unix.Sendto(other, []byte("MESSAGE=of another program\n"), 0, &unix.SockaddrUnix{Name: socket})
	}
	if !errors.Is(err, unix.EAGAIN) {
		return err
	}
	go speak()
	stacks := make([]byte, 1<<20)
	for !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("[IO wait")) {
		time.Sleep(time.Millisecond)
	}
	const look = 100 * time.Millisecond
	for range 100 {
		begin := time.Now()
		before, err := awake()
		if err != nil {
			return err
		}
		time.Sleep(look)
		after, err := awake()
		if err != nil {
			return err
		}
		// A thread that is busy is awake all the time. One that sleeps waits for a CPU now and then, for long on a busy
		// machine.
		if after-before < time.Since(begin)/2 {
			return unix.Close(other)
		}
	}
	return errors.New("the log keeps a CPU busy while journald's queue is full")
}

// awake returns for how long threads of this process have run, or waited for a CPU.
func awake() (sum time.Duration, err error) {
	threads, err := filepath.Glob("/proc/self/task/*/schedstat")
	for _, thread := range threads {
		var ran, waited time.Duration
		content, err := os.ReadFile(thread)
		if err != nil {
			return 0, err
		}
		if _, err := fmt.Sscan(string(content), &ran, &waited); err != nil {
			return 0, err
		}
		sum += ran + waited
	}
	return sum, err
}

// speak logs entries of two pods.
func speak() {
	log := logrus.New()
	queue := logqueue.New(8, nil)
	defer written(queue)
	Attach(log, queue)
	pod := log.WithFields(logrus.Fields{"pod_namespace": "default", "pod_name": "web-3", "pod_uid": "u-1", "container_id": "c0ffee"})
	pod.WithFields(logrus.Fields{"reason": "Concurrency", "place": 3, "held": "two\nlines"}).Warn("start waits in the gate")
	log.WithFields(logrus.Fields{"pod_namespace": "default", "pod_name": "web-4"}).Info("start admitted")
	pod.WithFields(logrus.Fields{"reason": "WithinLimits", "wait_ms": 14200}).Info("start admitted")
}

// parseEntry reads one entry in journald's native protocol: NAME=value lines. For a value with line breaks it is the
// name alone, the length in 8 bytes, and the value.
func parseEntry(data []byte) (map[string]string, error) {
	entry := map[string]string{}
	r := bufio.NewReader(bytes.NewReader(data))
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return entry, nil //nolint:nilerr // The end of the entry.
		}
		line = strings.TrimSuffix(line, "\n")
		if name, value, ok := strings.Cut(line, "="); ok {
			entry[name] = value
			continue
		}
		var size uint64
		if err := binary.Read(r, binary.LittleEndian, &size); err != nil {
			return nil, fmt.Errorf("field %s: %w", line, err)
		}
		value := make([]byte, size+1)
		if _, err := r.Read(value); err != nil {
			return nil, fmt.Errorf("field %s: %w", line, err)
		}
		if value[size] != '\n' {
			return nil, fmt.Errorf("field %s does not end where it says", line)
		}
		entry[line] = string(value[:size])
	}
}

// stageJournald runs journald, and queries one pod with journalctl.
func stageJournald() error {
	id, err := os.ReadFile("/etc/machine-id")
	if err != nil {
		return err
	}
	// This journald keeps its journal in memory, and none on disk.
	journals := filepath.Join("/run/log/journal", strings.TrimSpace(string(id)))
	if err := os.MkdirAll(journals, 0o755); err != nil {
		return err
	}
	journald := exec.Command(journaldProgram())
	journald.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := journald.Start(); err != nil {
		return err
	}
	defer func() {
		_ = journald.Process.Kill() // it ends with this process at the latest
		_ = journald.Wait()
	}()
	deadline := time.Now().Add(time.Minute)
	for !journal.Enabled() {
		if time.Now().After(deadline) {
			return errors.New("journald does not listen")
		}
		time.Sleep(10 * time.Millisecond)
	}
	speak()
	for {
		out, err := exec.Command("journalctl", "-D", "/run/log/journal", "-t", identifier, "POD_NAME=web-3", "-o", "json").CombinedOutput()
		if err == nil && bytes.Count(out, []byte("\n")) >= 2 {
			_, err = os.Stdout.Write(out)
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("journalctl: %w\n%s", err, out)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
