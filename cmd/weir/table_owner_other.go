//go:build !linux

package main

// asOwner only calls the function do. On this system there are no shared tables, because they need Linux.
func (c *tableCommand) asOwner(do func(restore string) error) error { return do(c.Restore) }
