// Command weir limits the rate of HTTP requests in front of a server. From an access log, it finds out which requests a
// limit would have refused.
//
//	weir serve --upstream http://127.0.0.1:9000 --limit 10/s --burst 20
//	weir check weir.yaml
//	weir replay --limit 10/s --burst 20 access.log.gz
//	weir replay --limit 10/m --compare access.log.gz
//	weir audit http://127.0.0.1:8080/
//	weir sim --nodes 4 --limit 1000/s
//	weir bench --quick
//	weir health
//	weir table /dev/shm/weir/api-d41bba485df2b642.v8.weir
//	weir completion bash
//	weir version
//
// The exit status is 0 when the work is done, and 1 when the work failed. It is 80 when the command line is wrong and
// nothing was done.
package main

import (
	"os"
	"strings"
	_ "time/tzdata" // for machines without the data of time zones

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"
	"github.com/posener/complete"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/cmd/internal/limit"
	"github.com/weir-go/weir/internal/version"
	"github.com/weir-go/weir/limits/spec"
)

// commands describes the command line. A new command needs one field here and one file in this folder.
type commands struct {
	Serve   serveCommand   `cmd:"" help:"Limit HTTP requests on their way to an upstream server."`
	Check   checkCommand   `cmd:"" help:"Explain a rule file, or print its mistakes."`
	Replay  replayCommand  `cmd:"" help:"Find out from an access log which clients a limit would have refused."`
	Audit   auditCommand   `cmd:"" help:"Find out from outside what limit a server has, and how clients can avoid it."`
	Bench   benchCommand   `cmd:"" passthrough:"" help:"Compare weir with the minimum that any limiter must do, and with other libraries."`
	Sim     simCommand     `cmd:"" help:"Simulate a limit on many machines, with several ways of sharing it."`
	Health  healthCommand  `cmd:"" help:"Ask a running weir whether it is ready: for container health checks."`
	Table   tableCommand   `cmd:"" help:"Show the contents of a table that processes of this machine share, while they use it."`
	Version versionCommand `cmd:"" help:"Print the version and exit."`

	Completion kongcompletion.Completion `cmd:"" help:"Print how to complete commands and flags with Tab in bash, zsh or fish."`

	PrintVersion kong.VersionFlag `name:"version" help:"Print the version and exit."`
}

const description = `weir is a rate limiter.

Exit status: 0 done, 80 the command line is wrong, 1 the work failed.`

func main() {
	parser := kong.Must(&commands{},
		kong.Name("weir"),
		kong.Description(description),
		kong.Vars{
			"algorithms": spec.List(), "compared": limit.Compared(), "formats": strings.Join(accesslog.Formats(), ", "),
			"version": version.Text("weir", version.Info()),
		},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true}),
	)
	kongcompletion.Register(parser, kongcompletion.WithPredictor("file", complete.PredictFiles("*")),
		kongcompletion.WithPredictor("format", complete.PredictSet(accesslog.Formats()...)))
	args := os.Args[1:]
	if len(args) == 0 {
		args = []string{"--help"}
	}
	chosen, err := parser.Parse(args)
	parser.FatalIfErrorf(err)
	given, err := newGivenFlags(chosen)
	chosen.FatalIfErrorf(err)
	chosen.FatalIfErrorf(chosen.Run(given))
}
