//go:build !linux

package main

// asOwner calls do: shared tables are for Linux.
func (c *tableCommand) asOwner(do func(restore string) error) error { return do(c.Restore) }
