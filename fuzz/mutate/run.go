package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// unbuilt is what is said of a change that does not build.
const unbuilt = "does not build"

// A stage is a command that a change is tried against.
type stage struct {
	name string
	in   string // which module, below the root
	args []string
	slow bool
}

// stages are the tests from the fastest to the slowest. Tests that hang are stopped: a change that makes one hang is
// noticed by that.
var stages = []stage{
	{"", "", []string{"build", "./atomicbucket", "./shard"}, false},
	{"unit tests", "", []string{"test", "-short", "-count", "1", "-failfast", "-timeout", "60s", "./atomicbucket", "./shard"}, false},
	{"engine", "", []string{"test", "-short", "-count", "1", "-failfast", "-timeout", "60s", "./engine"}, false},
	{"plans", "", []string{"test", "-tags", "explore", "-short", "-count", "1", "-failfast", "-timeout", "60s", "-run", "Step|Answer", "./shard"}, false},
	{"models", "fuzz", []string{"test", "-short", "-count", "1", "-failfast", "-timeout", "120s", "."}, false},
	{"interleavings", "fuzz", []string{"test", "-tags", "explore", "-count", "1", "-failfast", "-timeout", "300s", "-run", "TestScenarios", "./explore"}, true},
}

// noticed returns what notices the change: the name of a stage, unbuilt, or "" for nothing.
func (m mutation) noticed(root string, quick bool) (by string, err error) {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(root, dir)
	if err != nil {
		return "", err
	}
	for _, s := range stages {
		if s.slow && quick {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		c := exec.CommandContext(ctx, "go", append([]string{s.args[0], "-overlay", overlay}, s.args[1:]...)...)
		c.Dir, c.Env = filepath.Join(root, s.in), append(os.Environ(), "GOWORK=off")
		out, err := c.CombinedOutput()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			if s.name == "" {
				return unbuilt, nil
			}
			return s.name, nil
		} else if err != nil {
			return "", fmt.Errorf("%s: %w\n%s", s.name, err, out)
		}
	}
	return "", nil
}

// overlay writes the changed file and the list by which the build takes it for the real one.
func (m mutation) overlay(root, dir string) (list string, err error) {
	real, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, filepath.Base(m.file))
	if err := os.WriteFile(changed, []byte(m.source[:m.from]+m.text+m.source[m.to:]), 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{real: changed}})
	if err != nil {
		return "", err
	}
	list = filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, replace, 0o600)
}
