//go:build !unix

package main

import "os"

// notifyUpgrade does nothing: no signal of this system asks for an upgrade.
func notifyUpgrade(chan<- os.Signal) {}
