package accesslog

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// sampleLines is how many of the first lines of a log are looked at, as far as they are in the first MaxLine bytes.
const sampleLines = 1000

// A sample is what the first lines of a log show.
type sample struct {
	format *format // nil if there is no line that is not blank
	fields Fields
	begins time.Time // the time of the first entry; zero if there is none
}

// detect finds the format of which the first lines are, and what they hold. Lines that are of no format do not matter
// as long as others are of one: servers write other things to their logs, too. It is an error if all lines are of no
// format, or some of one and some of another.
//
// start is what the log begins with, and whole whether that is all of it. With a format given only the fields are
// found.
func detect(start []byte, whole bool, given *format) (sample, error) {
	lines := sampled(start, whole)
	if given != nil {
		t := newTrial(given).run(lines)
		return sample{given, t.fields(), t.begins}, nil
	}
	if len(lines) == 0 {
		if !whole {
			return sample{}, ErrLineTooLong
		}
		return sample{}, nil
	}
	var found *trial
	var trials []*trial
	for _, f := range formats {
		if f == common {
			continue
		}
		t := newTrial(f).run(lines)
		trials = append(trials, t)
		switch {
		case t.first == nil:
		case found != nil:
			return sample{}, ambiguous(found, t)
		default:
			found = t
		}
	}
	if found == nil {
		return sample{}, unknown(lines[0], trials)
	}
	fields := found.fields()
	if found.format == combined && len(fields.headers) == 0 {
		return sample{common, fields, found.begins}, nil
	}
	return sample{found.format, fields, found.begins}, nil
}

// A sampledLine is one that is not blank.
type sampledLine struct {
	number int
	text   []byte
}

// sampled returns the first lines. The last is one only if the end of the log is behind it.
func sampled(start []byte, whole bool) (lines []sampledLine) {
	for number := 1; len(start) > 0 && number <= sampleLines; number++ {
		text, rest, ended := bytes.Cut(start, []byte("\n"))
		if !ended && !whole {
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
	format *format
	parser parser
	first  *sampledLine // that is of the format; nil if none is
	begins time.Time    // its time
	reason error        // why the first line is not
}

func newTrial(f *format) *trial { return &trial{format: f} }

func (t *trial) run(lines []sampledLine) *trial {
	t.parser.learned = newLearned()
	kept := newLearned() // of lines that are of the format
	for i := range lines {
		err := t.parser.parse(t.format, lines[i].text)
		if err == nil {
			kept.add(t.parser.learned)
			if t.first == nil {
				t.first, t.begins = &lines[i], t.parser.entry.Time
			}
		} else if i == 0 {
			t.reason = err
		}
		t.parser.learned.reset()
	}
	t.parser.learned = kept
	return t
}

func (t *trial) fields() Fields { return t.parser.learned.fields() }

func ambiguous(a, b *trial) error {
	return fmt.Errorf("its lines are of two formats: line %d is %s, line %d is %s:\n    %s\n    %s\n"+
		"say --format %s or --format %s; lines of the other are then skipped",
		a.first.number, a.format.name, b.first.number, b.format.name, shown(a.first.text), shown(b.first.text),
		a.format.name, b.format.name)
}

func unknown(line sampledLine, trials []*trial) error {
	var text strings.Builder
	fmt.Fprintf(&text, "line %d is in no known format (nor is any after it); is it an access log?\n    %s\ntried:",
		line.number, shown(line.text))
	for _, t := range trials {
		fmt.Fprintf(&text, "\n    %-15s %v", t.format.name, t.reason)
	}
	text.WriteString("\nif it is one of these all the same, say which by --format NAME")
	return fmt.Errorf("%s", text.String())
}

// shown is a line as an error shows it: escaped, and cut to what fits a screen.
func shown(line []byte) string {
	const longest = 200
	cut := ""
	if len(line) > longest {
		line, cut = line[:longest], "..."
	}
	quoted := strconv.QuoteToGraphic(string(line))
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`) + cut
}
