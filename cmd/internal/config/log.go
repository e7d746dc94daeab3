package config

import (
	"log/slog"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

// Log says what is logged, and how.
type Log struct {
	Format   LogFormat
	Level    slog.Level
	Access   Sample // of all requests
	Refusals Sample // of those that a rule refuses, or would if it were not in shadow mode
}

// LogFormat is the form of the lines of the log.
type LogFormat string

// What LogFormat can be.
const (
	LogText LogFormat = "text" // key=value, the default
	LogJSON LogFormat = "json" // one object a line
)

// A Sample says which requests have a line in a log: one in so many, by chance. 0 is none, and 1 is all.
type Sample uint32

// maxSample is the largest Sample of a file.
const maxSample = 1_000_000

// String returns the sample as it is written in a file.
func (s Sample) String() string {
	switch s {
	case 0:
		return "none"
	case 1:
		return "all"
	}
	return "1/" + strconv.FormatUint(uint64(s), 10)
}

var (
	logFormats = []LogFormat{LogText, LogJSON}
	logLevels  = []string{"debug", "info", "warn", "error"}
)

func (d *decoder) log(n *yaml.Node, l *Log) {
	d.mapping(n, "log",
		field{"format", func(n *yaml.Node) { choice(d, n, "format", logFormats, &l.Format) }},
		field{"level", func(n *yaml.Node) { d.level(n, &l.Level) }},
		field{"access", func(n *yaml.Node) { d.sample(n, "access", &l.Access) }},
		field{"refusals", func(n *yaml.Node) { d.sample(n, "refusals", &l.Refusals) }},
	)
}

func (d *decoder) level(n *yaml.Node, into *slog.Level) {
	word := strings.ToLower(into.String())
	choice(d, n, "level", logLevels, &word)
	_ = into.UnmarshalText([]byte(word)) // it is one of these words
}

// sample reads none, all, or 1/N.
func (d *decoder) sample(n *yaml.Node, what string, into *Sample) {
	s, ok := d.text(n, what)
	if !ok {
		return
	}
	switch s {
	case "none":
		*into = 0
		return
	case "all":
		*into = 1
		return
	}
	text, _ := strings.CutPrefix(s, "1/")
	value, err := strconv.ParseUint(text, 10, 32)
	if err != nil || text == s || value == 0 || value > maxSample {
		d.Fail(n, "%s: %s: want none, all, or one in so many, such as 1/100, up to 1/%d", what, yamlfile.Quote(s), maxSample)
		return
	}
	*into = Sample(value)
}
