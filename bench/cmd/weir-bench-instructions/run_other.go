//go:build !linux || !amd64

package main

import "errors"

func run() error { return errors.New("only Linux on amd64 is stepped through") }
