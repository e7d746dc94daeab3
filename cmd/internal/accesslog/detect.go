package accesslog

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sampleLines is the number of lines at the start of a log that detect reads. They must be within the first MaxLine
// bytes.
const sampleLines = 1000

// A sample is what the first lines of a log show.
type sample struct {
	format    *format // nil if all lines are blank
	fields    Fields
	startTime time.Time // the time of the earliest entry; zero if there is none
}

// detect finds the format of a log, and its fields, from its first lines. Lines without a known format are ignored if
// other lines have one, because servers also log other things. It returns an error if no line has a known format, or if
// the lines have different formats.
//
// The parameter start is the start of the log. complete says whether it is the complete log. If wantFormat is not nil,
// detect only finds the fields.
func detect(start []byte, complete bool, wantFormat *format) (sample, error) {
	lines := firstLines(start, complete)
	if wantFormat != nil {
		t := try([]*format{wantFormat}, lines)[0]
		return sample{wantFormat, t.fields(), t.startTime}, nil
	}
	if len(lines) == 0 {
		if !complete {
			return sample{}, ErrLineTooLong
		}
		return sample{}, nil
	}
	trials := try(detectable, lines)
	found := slices.DeleteFunc(slices.Clone(trials), func(t *trial) bool { return t.first == nil })
	switch {
	case len(found) == 0:
		return sample{}, unknownError(lines[0], trials)
	case len(found) > 1:
		return sample{}, ambiguousError(found[0], found[1])
	}
	s := sample{found[0].format, found[0].fields(), found[0].startTime}
	if s.format == combined && len(s.fields.headers) == 0 {
		s.format = common
	}
	return s, nil
}

type sampledLine struct {
	number int
	text   []byte
}

// firstLines returns the first lines that are not blank. A last line without a line end counts only at the end of the
// log.
func firstLines(start []byte, complete bool) (lines []sampledLine) {
	for number := 1; len(start) > 0 && number <= sampleLines; number++ {
		text, rest, ended := bytes.Cut(start, []byte("\n"))
		if !ended && !complete {
			break
		}
		start = rest
		if !isBlank(text) {
			lines = append(lines, sampledLine{number, bytes.TrimSuffix(text, []byte("\r"))})
		}
	}
	return lines
}

// A trial is a format tried on the sample.
type trial struct {
	format    *format
	parser    parser
	optional  *fieldSet    // the optional fields that lines of the format have
	first     *sampledLine // first line of the format; nil if there is none
	startTime time.Time    // the earliest time of a line of the format
	reason    error        // why the first line that was tried is not of the format
}

// try tries the formats on each line until one fits. No line has two formats.
func try(formats []*format, lines []sampledLine) []*trial {
	trials := make([]*trial, len(formats))
	for i, f := range formats {
		trials[i] = &trial{format: f, parser: parser{optional: newFieldSet()}, optional: newFieldSet()}
	}
	last := trials[0] // the format of the previous line, which is tried first
	for i := range lines {
		if last.matches(&lines[i]) {
			continue
		}
		for _, t := range trials {
			if t != last && t.matches(&lines[i]) {
				last = t
				break
			}
		}
	}
	return trials
}

// matches reports whether the line has the format of the trial. If it has, the trial also records which fields the line
// has.
func (t *trial) matches(line *sampledLine) bool {
	t.parser.optional.reset()
	if err := t.parser.parse(t.format, line.text); err != nil {
		if t.reason == nil {
			t.reason = err
		}
		return false
	}
	t.optional.add(t.parser.optional)
	if at := t.parser.entry.Time; t.first == nil || at.Before(t.startTime) {
		t.startTime = at
	}
	if t.first == nil {
		t.first = line
	}
	return true
}

func (t *trial) fields() Fields { return t.optional.fields() }

func ambiguousError(a, b *trial) error {
	return fmt.Errorf("its lines are of two formats: line %d is %s, line %d is %s:\n    %s\n    %s\n"+
		"say --format %s or --format %s; lines of the other are then skipped",
		a.first.number, a.format.name, b.first.number, b.format.name, excerpt(a.first.text), excerpt(b.first.text),
		a.format.name, b.format.name)
}

func unknownError(line sampledLine, trials []*trial) error {
	var text strings.Builder
	fmt.Fprintf(&text, "line %d is in no known format (nor is any after it); is it an access log?\n    %s\ntried:",
		line.number, excerpt(line.text))
	for _, t := range trials {
		fmt.Fprintf(&text, "\n    %-15s %v", t.format.name, t.reason)
	}
	text.WriteString("\nif it is one of these anyway, name it with --format NAME")
	return fmt.Errorf("%s", text.String())
}

// excerpt returns a line for an error: escaped, and cut to the width of a screen.
func excerpt(line []byte) string {
	const longest = 200
	cut := ""
	if len(line) > longest {
		line, cut = line[:longest], "..."
	}
	quoted := strconv.QuoteToGraphic(string(line))
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`) + cut
}
