package main

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestProgramTellsItsVersion(t *testing.T) {
	program := build(t)
	command := run(t, program, "", "version")
	assert.Equal(t, result{0, command.stdout, ""}, run(t, program, "", "--version"))
	assert.Regexp(t, `\Aweir \S+\n(commit .*\n)?go1\.\S+ `+runtime.GOOS+"/"+runtime.GOARCH+`\n\z`, command.stdout)
}
