// Package journal sends the entries of a logrus logger to journald, each field as a field of the journal.
package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"

	"github.com/coreos/go-systemd/v22/journal"
	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/logqueue"
)

const (
	// identifier is the program's name in the journal.
	identifier = "pod-pacemaker"
	// socket is where journald listens.
	socket = "/run/systemd/journal/socket"
)

// hook sends the entries of every level to journald. It never blocks, and is safe for concurrent use.
type hook struct {
	queue  *logqueue.Queue
	socket string
}

// Attach makes the logger send all its entries to journald, through the queue, and nowhere else. An entry that journald
// refuses is dropped, which the queue counts.
func Attach(log *logrus.Logger, q *logqueue.Queue) { attach(log, q, socket) }

func attach(log *logrus.Logger, q *logqueue.Queue, socket string) {
	log.SetOutput(io.Discard)
	log.AddHook(&hook{queue: q, socket: socket})
}

// Levels returns all levels, because the logger has dropped the entries below its own level.
func (*hook) Levels() []logrus.Level { return logrus.AllLevels }

// Fire queues one entry. It formats the fields now, because their values may change later.
func (h *hook) Fire(e *logrus.Entry) error {
	message, level, fields := message(e), priorities[e.Level], fields(e)
	h.queue.Add(func() error { return send(h.socket, message, level, fields) })
	return nil
}

// send does what journal.Send does, on a connected socket. The socket of journal.Send is not connected: while
// journald's queue is full, the kernel reports such a socket as writable and refuses each write, so the sender would keep a
// CPU busy.
func send(socket, message string, priority journal.Priority, fields map[string]string) error {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer conn.Close()
	var entry []byte
	add := func(name, value string) {
		entry = binary.LittleEndian.AppendUint64(append(entry, name+"\n"...), uint64(len(value)))
		entry = append(entry, value+"\n"...)
	}
	add("MESSAGE", message)
	add("PRIORITY", strconv.Itoa(int(priority)))
	for name, value := range fields {
		add(name, value)
	}
	_, err = conn.Write(entry)
	if errors.Is(err, syscall.EMSGSIZE) || errors.Is(err, syscall.ENOBUFS) {
		return journal.Send(message, priority, fields) // an entry of 200 KB, in a file
	}
	return err
}

// message returns the text of an entry with its error, as journalctl prints no other fields.
func message(e *logrus.Entry) string {
	if err, ok := e.Data[logrus.ErrorKey]; ok {
		return fmt.Sprintf("%s: %v", e.Message, err)
	}
	return e.Message
}

// fields returns the journal's fields of an entry: "pod_uid" becomes POD_UID. Values are as in the log as text.
func fields(e *logrus.Entry) map[string]string {
	all := make(map[string]string, len(e.Data)+1)
	for key, value := range e.Data {
		all[strings.ToUpper(key)] = fmt.Sprint(value)
	}
	all["SYSLOG_IDENTIFIER"] = identifier
	return all
}

// priorities are the journal's priorities, by logrus level.
var priorities = [...]journal.Priority{
	logrus.PanicLevel: journal.PriEmerg, logrus.FatalLevel: journal.PriCrit, //nolint:forbidigo // a table of all levels
	logrus.ErrorLevel: journal.PriErr, logrus.WarnLevel: journal.PriWarning, logrus.InfoLevel: journal.PriInfo,
	logrus.DebugLevel: journal.PriDebug, logrus.TraceLevel: journal.PriDebug,
}
