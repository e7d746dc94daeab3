//go:build unix

package listen

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/weir-go/weir/internal/unixsocket"
)

// handoverVariable is the environment variable that describes handed-over sockets, as JSON, in the order of their
// descriptors.
const handoverVariable = "WEIR_HANDOVER"

// A process that replaces another gets a pipe for [Inherited.Tell] as its first descriptor, and then the sockets.
const (
	outcomeDescriptor = 3
	firstHanded       = 4
)

// Inherit returns the listening sockets that the process got at its start. Child processes do not get them. Call
// Inherit only once.
func Inherit() (*Inherited, error) {
	text, found := os.LookupEnv(handoverVariable)
	if !found {
		files, err := passedFiles()
		if err != nil || files == nil {
			return nil, err
		}
		return Passed(files)
	}
	_ = os.Unsetenv(handoverVariable) // never fails for such a name
	var handed Handed
	if err := json.Unmarshal([]byte(text), &handed.sockets); err != nil {
		return nil, fmt.Errorf("%s is for a weir process that replaces another: %w", handoverVariable, err)
	}
	for n := range handed.sockets {
		syscall.CloseOnExec(firstHanded + n)
		handed.files = append(handed.files, os.NewFile(uintptr(firstHanded+n), handed.sockets[n].Address))
	}
	syscall.CloseOnExec(outcomeDescriptor)
	return handed.Inherit(os.NewFile(outcomeDescriptor, "outcome"))
}

// Passed returns the sockets whose descriptors systemd has passed, and closes the descriptors.
func Passed(files []*os.File) (*Inherited, error) { return inheritFiles(nil, files) }

// Inherit returns the sockets for the process that takes over. [Inherited.Tell] writes its report to outcome, and
// closes outcome. If Inherit returns an error, it closes outcome.
func (h *Handed) Inherit(outcome io.WriteCloser) (*Inherited, error) {
	inherited, err := inheritFiles(h.sockets, h.files)
	if err != nil {
		(&Inherited{predecessor: outcome}).Tell(err)
		return nil, err
	}
	inherited.predecessor = outcome
	return inherited, nil
}

// inheritFiles makes listeners from descriptors, and closes the descriptors. sockets is nil if systemd passed them.
func inheritFiles(sockets []handedSocket, files []*os.File) (*Inherited, error) {
	i := &Inherited{}
	for n, file := range files {
		s := &inheritedSocket{name: file.Name()}
		if sockets != nil {
			s = &inheritedSocket{handedSocket: sockets[n]}
		}
		var err error
		if s.streamListener, err = inheritFile(file, s.Address); err != nil {
			return nil, fmt.Errorf("the inherited socket %s: %w", file.Name(), err)
		}
		i.sockets = append(i.sockets, s)
	}
	return i, nil
}

// inheritFile returns the listener of a descriptor. The parameter address is the listener's address in the previous
// weir process, or "" if systemd passed the descriptor.
func inheritFile(file *os.File, address string) (streamListener, error) {
	defer file.Close()
	if err := checkListening(int(file.Fd())); err != nil {
		return nil, err
	}
	l, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	switch l := l.(type) {
	case *net.TCPListener:
		return l, nil
	case *net.UnixListener:
		path, isHanded := unixsocket.Path(address)
		if !isHanded {
			path = l.Addr().String()
		}
		return adoptUnix(l, path)
	default:
		_ = l.Close() // weir cannot use it
		return nil, fmt.Errorf("want TCP or a Unix socket, got %s", l.Addr().Network())
	}
}
