//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyUpgrade relays the signal for an upgrade.
func notifyUpgrade(to chan<- os.Signal) { signal.Notify(to, syscall.SIGUSR2) }
