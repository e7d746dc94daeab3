//go:build !linux

package main

// asOwner calls the function do, and nothing else, because shared tables need Linux.
func (c *tableCommand) asOwner(do func(restore string) error) error { return do(c.Restore) }
