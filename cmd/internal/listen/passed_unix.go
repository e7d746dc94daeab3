//go:build unix

package listen

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"
)

// systemd passes descriptors from firstPassed on, and at most maxPassed of them.
const (
	firstPassed = 3
	maxPassed   = math.MaxInt32 - firstPassed
)

// passedFiles returns the sockets that systemd or a similar program has passed. There are none if LISTEN_PID does not
// name this process.
func passedFiles() ([]*os.File, error) {
	if err := checkPassed(); err != nil {
		return nil, err
	}
	return activation.Files(true), nil
}

// checkPassed returns an error if the variables about passed sockets are invalid or do not match a descriptor, as
// sd_listen_fds does. [activation.Files] would ignore invalid variables, and weir would then open the ports itself. A
// descriptor that was not passed may belong to the Go runtime, so checkPassed does not close it.
func checkPassed() error {
	pidText := os.Getenv("LISTEN_PID")
	if pidText == "" {
		return nil
	}
	pid, err := strconv.Atoi(pidText)
	if err != nil || pid < 1 {
		return fmt.Errorf("LISTEN_PID=%q: want the number of the process that the sockets are for, from 1: set it, or unset "+
			"LISTEN_PID and LISTEN_FDS", pidText)
	}
	countText, isSet := os.LookupEnv("LISTEN_FDS")
	if pid != os.Getpid() || !isSet {
		return nil
	}
	n, err := strconv.Atoi(countText)
	if err != nil || n < 1 || n > maxPassed {
		return fmt.Errorf("LISTEN_FDS=%q: want how many sockets are passed to this process, 1 to %d: set it, or unset "+
			"LISTEN_PID and LISTEN_FDS", countText, maxPassed)
	}
	if names := os.Getenv("LISTEN_FDNAMES"); names != "" && strings.Count(names, ":")+1 != n {
		return fmt.Errorf("LISTEN_FDNAMES=%q has %d names, and LISTEN_FDS is %d: want a name for each socket, with colons between them",
			names, strings.Count(names, ":")+1, n)
	}
	for fd := firstPassed; fd < firstPassed+n; fd++ {
		if err := checkListening(fd); err != nil {
			return fmt.Errorf("LISTEN_FDS=%d, which are the descriptors 3 to %d: descriptor %d: %w", n, firstPassed+n-1, fd, err)
		}
	}
	return nil
}

// checkListening returns an error if a descriptor is not a listening socket for streams. For example, a socket for
// packets would lose the ends of requests.
func checkListening(fd int) error {
	listening, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if errors.Is(err, unix.EBADF) || errors.Is(err, unix.ENOTSOCK) {
		return fmt.Errorf("want a socket that listens for connections: %w", err)
	}
	kind, typeErr := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err == nil && (listening == 0 || typeErr != nil || kind != unix.SOCK_STREAM) {
		return errors.New("want one that listens for connections: ListenStream= and Accept=no in systemd's unit")
	}
	return nil
}
