//go:build !unix

package serve

import (
	"context"
	"errors"
	"os"
)

// Inherit returns none: processes of this system start without sockets.
func Inherit() (*Inherited, error) { return nil, nil }

func startSuccessor(context.Context, []handedSocket, []*os.File) (*successor, error) {
	return nil, errors.New("sockets can be handed over on Unix only")
}

func duplicate(bound) (*os.File, error) {
	return nil, errors.New("sockets can be handed over on Unix only")
}
