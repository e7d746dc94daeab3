package main

import (
	"fmt"
	"io"
	"os"

	"github.com/weir-go/weir/cmd/weir/internal/accesslog"
	"github.com/weir-go/weir/cmd/weir/internal/replay"
)

type replayCommand struct {
	limitFlags
	Key  string `default:"ip" enum:"ip" placeholder:"ip" help:"What identifies a client: a log has the address only (default: ${default})."`
	Top  uint   `default:"10" placeholder:"N" help:"Most refused keys to show (default: ${default})."`
	JSON bool   `name:"json" help:"Print one JSON object, with all refused keys, instead of a table."`
	File string `arg:"" help:"The access log, plain or gzip; - for standard input."`
}

// Help is what "weir replay --help" says beyond the flags.
func (*replayCommand) Help() string {
	return `The log is in the Common or Combined Log Format. Its requests go through the limiter in the order of the log, each
at the latest time stamp seen so far, because logs are slightly out of order.

Lines that are not in the format, or longer than 1 MiB, are skipped and counted, and the first few are shown with
the reason. A log without any request, and one that breaks off, is an error.

Try it:

    weir replay --limit 10/m --burst 10 /var/log/nginx/access.log`
}

// Run implements the command.
func (c *replayCommand) Run() error {
	source, err := accesslog.Open(c.File)
	if err != nil {
		return err
	}
	defer source.Close()

	input, done := io.Reader(source), func() {}
	if !c.JSON {
		input, done = withProgress(source, os.Stderr)
	}
	report, err := replay.Run(c.limiter, accesslog.NewLines(input))
	done()
	if err != nil {
		return fmt.Errorf("%s: %w", source.Name, err)
	}
	return c.write(source.Name, report, os.Stdout, os.Stderr)
}

// write prints the report on the log of that name. The JSON has no place for doubts about its figures,
// so they go to notes.
func (c *replayCommand) write(name string, report *replay.Report, out, notes io.Writer) error {
	if !c.JSON {
		if _, err := fmt.Fprintf(out, "%s at %s, burst %d, by %s\n\n", name, c.Limit, c.Burst, c.Key); err != nil {
			return err
		}
		return report.WriteTable(out, int(min(c.Top, 1<<31-1)))
	}
	if report.Skipped > 0 {
		fmt.Fprintf(notes, "weir: lines skipped: %d, the first is %s\n", report.Skipped, report.Reasons[0])
	}
	if note := report.EvictionNote(); note != "" {
		fmt.Fprintf(notes, "weir: %s\n", note)
	}
	return report.WriteJSON(out)
}
