//go:build !unix

package main

import "os"

// notifyUpgrade does nothing: this system has no signal for an upgrade.
func notifyUpgrade(chan<- os.Signal) {}
