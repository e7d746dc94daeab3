//go:build !linux

package experiment

import "errors"

// smallPages cannot be done here.
func smallPages() error { return errors.New("only Linux lets a process choose the size of its pages") }
