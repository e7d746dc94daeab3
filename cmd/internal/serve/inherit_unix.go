//go:build unix

package serve

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/weir-go/weir/cmd/internal/config"
)

// handoverVariable holds the sockets that a weir hands over, as JSON. Their descriptors follow firstHanded, in order.
const handoverVariable = "WEIR_HANDOVER"

// The descriptors of a process that takes the place of another: a pipe for [Inherited.Tell], and the sockets.
const (
	outcomeDescriptor = 3
	firstHanded       = 4
)

// Inherit returns the listening sockets that the process was started with, and makes them nobody else's. Call it once.
func Inherit() (*Inherited, error) {
	text, handed := os.LookupEnv(handoverVariable)
	if !handed {
		files, err := passedFiles()
		if err != nil || files == nil {
			return nil, err
		}
		return inheritFiles(nil, files)
	}
	_ = os.Unsetenv(handoverVariable) // never fails for such a name
	var sockets []handedSocket
	if err := json.Unmarshal([]byte(text), &sockets); err != nil {
		return nil, fmt.Errorf("%s is for a weir that takes the place of another: %w", handoverVariable, err)
	}
	files := make([]*os.File, len(sockets))
	for n := range files {
		syscall.CloseOnExec(firstHanded + n)
		files[n] = os.NewFile(uintptr(firstHanded+n), sockets[n].Address)
	}
	syscall.CloseOnExec(outcomeDescriptor)
	predecessor := os.NewFile(outcomeDescriptor, "outcome")
	inherited, err := inheritFiles(sockets, files)
	if err != nil {
		(&Inherited{predecessor: predecessor}).Tell(err)
		return nil, err
	}
	inherited.predecessor = predecessor
	return inherited, nil
}

// inheritFiles makes listeners of descriptors, and closes those. sockets are nil where systemd has passed them.
func inheritFiles(sockets []handedSocket, files []*os.File) (*Inherited, error) {
	i := &Inherited{}
	for n, file := range files {
		s := &inheritedSocket{name: file.Name()}
		if sockets != nil {
			s = &inheritedSocket{handedSocket: sockets[n]}
		}
		var err error
		if s.bound, err = inheritFile(file, s.Address); err != nil {
			return nil, fmt.Errorf("the inherited socket %s: %w", file.Name(), err)
		}
		i.sockets = append(i.sockets, s)
	}
	return i, nil
}

// inheritFile returns the listener of a descriptor. address is where a weir has listened, "" where systemd does.
func inheritFile(file *os.File, address string) (bound, error) {
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
		path, handed := config.SocketPath(address)
		if !handed {
			path = l.Addr().String()
		}
		return adoptUnix(l, path)
	default:
		_ = l.Close() // is of no use
		return nil, fmt.Errorf("want TCP or a Unix socket, got %s", l.Addr().Network())
	}
}
