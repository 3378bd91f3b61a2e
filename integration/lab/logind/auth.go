package logind

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// busID is the bus's ID. Clients only check that there is one.
const busID = "706f642d706163656d616b65722d6c61"

// authenticate is the server's side of the handshake before the first message. The permissions of
// the socket have already authenticated the client.
func authenticate(in *bufio.Reader, out io.Writer) error {
	if b, err := in.ReadByte(); err != nil || b != 0 {
		return errors.Join(errors.New("the handshake does not begin with a zero byte"), err)
	}
	for accepted := false; ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return fmt.Errorf("in the handshake: %w", err)
		}
		command, rest, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		if command == "BEGIN" && accepted {
			return nil
		}
		answer := answerTo(command, rest, accepted)
		accepted = accepted || strings.HasPrefix(answer, "OK ")
		if _, err := io.WriteString(out, answer+"\r\n"); err != nil {
			return fmt.Errorf("in the handshake: %w", err)
		}
	}
}

func answerTo(command, rest string, accepted bool) string {
	mechanism, identity, _ := strings.Cut(rest, " ")
	switch {
	case command == "AUTH" && mechanism == "EXTERNAL" && identity == "":
		return "DATA"
	case command == "AUTH" && mechanism == "EXTERNAL", command == "DATA":
		return "OK " + busID
	case command == "AUTH":
		return "REJECTED EXTERNAL"
	case command == "NEGOTIATE_UNIX_FD" && accepted:
		return "AGREE_UNIX_FD"
	default:
		return "ERROR"
	}
}
