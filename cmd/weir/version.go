package main

import (
	"fmt"

	"github.com/weir-go/weir/internal/version"
)

type versionCommand struct{}

func (versionCommand) Run() error {
	_, err := fmt.Println(version.Text("weir", version.Info()))
	return err
}
