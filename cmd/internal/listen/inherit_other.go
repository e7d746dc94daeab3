//go:build !unix

package listen

import (
	"context"
	"errors"
	"io"
	"os"
)

// Inherit returns nil, because processes of this system start without sockets.
func Inherit() (*Inherited, error) { return nil, nil }

// Passed returns an error, because this system is not Unix.
func Passed([]*os.File) (*Inherited, error) { return nil, errNotUnix }

// Inherit returns an error, because this system is not Unix.
func (h *Handed) Inherit(io.WriteCloser) (*Inherited, error) { return nil, errNotUnix }

// Start returns an error, because this system is not Unix.
func (h *Handed) Start(context.Context) (*Successor, error) { return nil, errNotUnix }

func duplicate(streamListener) (*os.File, error) { return nil, errNotUnix }

var errNotUnix = errors.New("sockets can be handed over on Unix only")
