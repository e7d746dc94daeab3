// Package program has what the command lines of the benchmark programs have in common.
package program

import (
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

// Misuse is an error in the command line, not in the work.
type Misuse struct{ error }

// NewMisuse marks an error as one in the command line.
func NewMisuse(err error) Misuse { return Misuse{err} }

// ExitCode is 80, the status that kong gives to a command line that it cannot parse.
func (Misuse) ExitCode() int { return 80 }

// Run parses the arguments of the process into a command, which is a pointer to a struct as kong reads it,
// and calls its Run method. An error ends the process: with status 80 for a Misuse or arguments that do not parse,
// otherwise with 1.
func Run(command any, name, description string) {
	parser := kong.Must(command,
		kong.Name(name),
		kong.Description(description),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true}),
	)
	parsed, err := parser.Parse(os.Args[1:])
	parser.FatalIfErrorf(err)
	parsed.FatalIfErrorf(parsed.Run())
}

// CommandLine returns the command line of the process under a name, as a result records it.
func CommandLine(name string) string { return name + " " + strings.Join(os.Args[1:], " ") }
