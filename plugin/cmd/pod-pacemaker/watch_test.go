package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// asProgram in the environment has the test binary be pod-pacemaker.
const asProgram = "POD_PACEMAKER_TEST_AS_PROGRAM"

// terminal is a pseudo-terminal: the side of the person, and that of the program.
type terminal struct {
	person, program *os.File
	shown           written
	ended           chan error // of the copy to shown
}

func newTerminal(t *testing.T, width, height uint16) *terminal {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	fd := int(person.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	term := &terminal{person: person, program: program, ended: make(chan error, 1)}
	term.resize(t, width, height)
	go func() {
		_, err := io.Copy(&term.shown, person)
		term.ended <- err
	}()
	return term
}

func (term *terminal) resize(t *testing.T, width, height uint16) {
	t.Helper()
	require.NoError(t, unix.IoctlSetWinsize(int(term.program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}))
}

func (term *terminal) modes(t *testing.T) unix.Termios {
	t.Helper()
	modes, err := unix.IoctlGetTermios(int(term.program.Fd()), unix.TCGETS)
	require.NoError(t, err)
	return *modes
}

// close ends the terminal, and waits until all was read that was shown on it.
func (term *terminal) close(t *testing.T) string {
	t.Helper()
	require.NoError(t, term.program.Close())
	require.ErrorIs(t, <-term.ended, syscall.EIO, "the other side is gone")
	require.NoError(t, term.person.Close())
	return term.shown.String()
}

// pictures gives what was drawn so far, picture by picture.
func pictures(shown string) []string { return strings.Split(shown, "\x1b[H")[1:] }

// start runs the program on the terminal, as its foreground process.
func (term *terminal) start(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "NO_COLOR=")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = term.program, term.program, term.program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	return cmd
}

// Somebody watches, makes the window smaller, and presses Ctrl-C.
func TestWatchOnATerminal(t *testing.T) {
	t.Parallel()
	runDir := serve(t, &fixed{status: herd()})
	term := newTerminal(t, 100, 60)
	before := term.modes(t)
	cmd := term.start(t, "status", "--watch", "--run-dir", runDir)
	waitFor := func(what string, holds func(last string, n int) bool) {
		require.Eventually(t, func() bool {
			all := pictures(term.shown.String())
			return len(all) > 0 && holds(all[len(all)-1], len(all))
		}, time.Minute, 5*time.Millisecond, what)
	}
	waitFor("it draws anew", func(_ string, n int) bool { return n >= 3 })
	first, second := pictures(term.shown.String())[0], pictures(term.shown.String())[1]
	assert.Equal(t, first, second, "of the same status")
	assert.Contains(t, first, "\x1b[1mSTARTING 2 of 2, and 1 without a slot", "headings stand out")
	assert.Equal(t, strings.Count(first, "\n"), strings.Count(first, "\x1b[K\r\n"), "no line of an earlier picture shows through")
	assert.True(t, strings.HasSuffix(first, "\x1b[J"), "nor anything below")

	term.resize(t, 40, 10)
	waitFor("it fits the smaller window", func(last string, _ int) bool { return strings.Contains(last, "more lines") })
	waitFor("the picture is whole", func(last string, _ int) bool { return strings.HasSuffix(last, "\x1b[J") })

	_, err := term.person.WriteString("\x03")
	require.NoError(t, err)
	require.NoError(t, cmd.Wait(), "Ctrl-C is the way to end it")
	assert.Equal(t, before, term.modes(t), "the terminal is as it was")
	shown := term.close(t)
	assert.NotContains(t, shown, "\x1b[?", "no mode of the terminal is changed")
	assert.True(t, strings.HasSuffix(shown, "\n"), "the prompt begins a line: %q", shown[max(0, len(shown)-20):])
	assert.Equal(t, strings.Count(shown, "\x1b[1m")+strings.Count(shown, "\x1b[2m")+strings.Count(shown, "\x1b[1;31m"), strings.Count(shown, "\x1b[0m"),
		"no style is left on")
}

// Into a pipe goes plain text, and Ctrl-C reaches the one who watches there too.
func TestWatchIntoAPipe(t *testing.T) {
	t.Parallel()
	runDir := serve(t, &fixed{status: herd()})
	cmd := exec.CommandContext(t.Context(), os.Args[0], "status", "--watch", "--run-dir", runDir)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, once, _ := call(t, "status", "--run-dir", runDir)
	got := make([]byte, 2*len(once)+2)
	_, err = io.ReadFull(out, got)
	require.NoError(t, err)
	assert.Equal(t, once+"\n"+once+"\n", string(got))
	assert.False(t, bytes.ContainsRune(got, '\x1b'))
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	_, err = io.Copy(io.Discard, out)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
}
