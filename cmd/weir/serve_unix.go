//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

func notifyUpgrade(signals chan<- os.Signal) { signal.Notify(signals, syscall.SIGUSR2) }
