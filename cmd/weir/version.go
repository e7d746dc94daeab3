package main

import (
	"fmt"

	"github.com/weir-go/weir/internal/version"
)

type versionCommand struct{}

// Run implements the command.
func (versionCommand) Run() error {
	_, err := fmt.Println(version.Text("weir", version.Info()))
	return err
}
