//go:build !linux

package experiment

import "errors"

// smallPages returns an error, because a process cannot choose small pages on this system.
func smallPages() error { return errors.New("only Linux lets a process choose the size of its pages") }
