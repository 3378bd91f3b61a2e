package plugin

import (
	"fmt"
	"net"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// runtimeName is what the program of the runtime is called.
const runtimeName = "containerd"

// runtimeProcess finds the process at the other end of the NRI socket: by the
// socket, or, where that is in another namespace of processes, by its name. Zero:
// it cannot be told.
func runtimeProcess(procRoot string, conn net.Conn) processOfNode {
	fs, err := procfs.NewFS(procRoot)
	if err != nil {
		return processOfNode{}
	}
	if pid, err := peerPID(conn); err == nil && pid > 0 {
		if proc, err := fs.Proc(pid); err == nil {
			return describe(proc)
		}
	}
	all, err := fs.AllProcs()
	if err != nil {
		return processOfNode{}
	}
	var found processOfNode
	for _, proc := range all {
		if name, err := proc.Comm(); err != nil || name != runtimeName {
			continue
		}
		if found.pid != 0 {
			return processOfNode{} // there are several: which of them is not known
		}
		found = describe(proc)
	}
	return found
}

// describe tells of a process; zero where it is gone.
func describe(proc procfs.Proc) processOfNode {
	stat, err := proc.Stat()
	if err != nil {
		return processOfNode{}
	}
	return processOfNode{pid: proc.PID, name: stat.Comm, started: stat.Starttime}
}

// peerPID gives the number of the process that listens at the other end; 0 where
// this process cannot see it.
func peerPID(conn net.Conn) (int, error) {
	sock, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, fmt.Errorf("%T is no unix socket", conn)
	}
	raw, err := sock.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if credErr != nil {
		return 0, credErr
	}
	return int(cred.Pid), nil
}
