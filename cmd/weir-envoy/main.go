// Command weir-envoy implements Envoy's global rate limit service. If one process counts everything, it needs no store.
// It reads the files and environment variables of github.com/envoyproxy/ratelimit, called the reference here.
//
//	RUNTIME_ROOT=. RUNTIME_WATCH_ROOT=false weir-envoy serve
//	weir-envoy check config/
//	weir-envoy variables
//	weir-envoy version
//
// The exit status is 0 when the work is done, and 1 when it failed. It is 80 when the command line is wrong; then
// nothing was done.
package main

import (
	"fmt"
	"os"
	_ "time/tzdata" // for machines without the data of time zones

	"github.com/alecthomas/kong"

	"github.com/weir-go/weir/internal/version"
)

type commands struct {
	Serve     serveCommand     `cmd:"" default:"withargs" help:"Answer Envoy."`
	Check     checkCommand     `cmd:"" help:"Check the configuration in a directory or a file, and print its mistakes."`
	Variables variablesCommand `cmd:"" help:"List the reference's environment variables, and whether they are read, ignored or refused."`
	Version   versionCommand   `cmd:"" help:"Print the version and exit."`

	PrintVersion kong.VersionFlag `name:"version" help:"Print the version and exit."`
}

const description = `weir-envoy is Envoy's rate limit service on weir's engine.

Every flag of serve has an environment variable, which is the reference's where it has one.

Exit status: 0 done, 80 the command line is wrong, 1 the work failed.`

func main() {
	parser := kong.Must(&commands{},
		kong.Name("weir-envoy"),
		kong.Description(description),
		kong.Vars{"version": version.Text("weir-envoy", version.Info())},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true}),
	)
	command, err := parser.Parse(arguments(os.Args[1:]))
	parser.FatalIfErrorf(err)
	command.FatalIfErrorf(command.Run())
}

// arguments returns the arguments without the program's name in the reference's image. A compose file for that image
// has this name as its command. So the entry point of weir's image gets it as the first argument.
func arguments(args []string) []string {
	if len(args) > 0 && args[0] == "/bin/ratelimit" {
		return args[1:]
	}
	return args
}

type versionCommand struct{}

// Run prints the version, and from which sources the program was built.
func (versionCommand) Run() error {
	_, err := fmt.Println(version.Text("weir-envoy", version.Info()))
	return err
}
