// Package program contains what the command lines of the benchmark programs have in common.
package program

import (
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

// Misuse is an error in the command line, not a failure of the work.
type Misuse struct{ error }

// NewMisuse marks an error as a Misuse.
func NewMisuse(err error) Misuse { return Misuse{err} }

// ExitCode returns 80, the status that kong uses for a command line that it cannot parse.
func (Misuse) ExitCode() int { return 80 }

// Run parses the process's arguments into a struct with kong tags, and calls its method Run. The argument command is a
// pointer to the struct. An error ends the process: with status 80 for a Misuse or wrong arguments, and otherwise 1.
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

// CommandLine returns the command line of the process, with the argument name as the program's name. Results contain
// this command line.
func CommandLine(name string) string { return name + " " + strings.Join(os.Args[1:], " ") }
