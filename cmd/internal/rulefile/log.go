package rulefile

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

type Log struct {
	Format   LogFormat
	Level    slog.Level
	Access   Sample // for all requests
	Refusals Sample // for requests that a rule refuses, or would refuse without shadow mode
}

type LogFormat string

const (
	LogText LogFormat = "text" // key=value; the default
	LogJSON LogFormat = "json" // one object per line
)

// Sample says which requests have a line in the log: one of Sample requests, chosen at random. The value 1 means all,
// and 0 means none.
type Sample uint32

const maxSample = 1_000_000

// String returns the sample as in a file.
func (s Sample) String() string {
	switch s {
	case 0:
		return "none"
	case 1:
		return "all"
	}
	return "1/" + strconv.FormatUint(uint64(s), 10)
}

func (l *Log) section() section {
	return section{name: "log", entries: []entry{
		newEntry("format", words(LogText, LogJSON), &l.Format, string(LogText),
			"`text` (key=value) or `json`, one object a line; a change takes effect at the next start"),
		newEntry("level", enum([]string{"debug", "info", "warn", "error"},
			[]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}), &l.Level, "info",
			"`debug`, `info`, `warn` or `error`: lower ones are left out"),
		newEntry("access", sample, &l.Access, "none", "a line for each request (`all`), for one request in N at random (`1/100`), or for `none`"),
		newEntry("refusals", sample, &l.Refusals, "none", "the same for each refusal of a rule, including those in shadow mode"),
	}}
}

var sample = scalar(schema{"type": "string", "pattern": "^(none|all|1/[1-9][0-9]{0,6})$"}, func(d *decoder, n *yaml.Node, keyName, s string) Sample {
	switch s {
	case "none":
		return 0
	case "all":
		return 1
	}
	text, _ := strings.CutPrefix(s, "1/")
	value, err := strconv.ParseUint(text, 10, 32)
	if err != nil || text == s || value == 0 || value > maxSample {
		d.Fail(n, "%s: %s: want none, all, or one in so many, such as 1/100, up to 1/%d", keyName, yamlfile.Quote(s), maxSample)
	}
	return Sample(value)
}).withRange(fmt.Sprintf("up to 1/%d", maxSample))
