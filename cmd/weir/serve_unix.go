//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyUpgrade relays the signal that asks for an upgrade.
func notifyUpgrade(to chan<- os.Signal) { signal.Notify(to, syscall.SIGUSR2) }
