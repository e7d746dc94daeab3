package server

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Program is an executable that must be installed.
type Program struct {
	Name    string   // or its path
	Package string   // how to get it
	Version []string // the arguments that print the version; nil for a program of this repository
}

// Wrk is the program that makes the requests.
var Wrk = Program{Name: "wrk", Package: "apt-get install wrk", Version: []string{"-v"}}

// Find returns the program's path. It also searches Debian's folders of servers, which are not always in PATH.
func (p Program) Find() (string, error) {
	path, err := exec.LookPath(p.Name)
	if err != nil && !strings.Contains(p.Name, "/") {
		path, err = exec.LookPath("/usr/sbin/" + p.Name)
	}
	if err != nil {
		return "", fmt.Errorf("%s is missing: %s", p.Name, p.Package)
	}
	return filepath.Abs(path)
}

// FindVersion returns the line in which the program prints its version.
func (p Program) FindVersion(ctx context.Context) (string, error) {
	path, err := p.Find()
	if err != nil {
		return "", err
	}
	// wrk exits with status 1 after printing its version.
	out, err := exec.CommandContext(ctx, path, p.Version...).CombinedOutput()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if line == "" {
		return "", fmt.Errorf("%s %s says nothing: %v", path, strings.Join(p.Version, " "), err)
	}
	return line, nil
}
