//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

func notifyUpgrade(to chan<- os.Signal) { signal.Notify(to, syscall.SIGUSR2) }
