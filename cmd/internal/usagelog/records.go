package usagelog

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/weir-go/weir/cmd/internal/usage"
)

// These are the formats, with the names that reports use.
const (
	formatLines  = "usage as lines of JSON"
	formatOpenAI = "OpenAI's usage"
	formatTable  = "usage as a table"
)

// values reads JSON: one value per line, or values that take several lines.
func (r *reader) values(in *bufio.Reader) error {
	line, more, err := nextLine(in)
	if err != nil {
		return err
	}
	if !json.Valid(line) {
		return r.stream(io.MultiReader(bytes.NewReader(append(line, '\n')), in))
	}
	for number := 1; ; number++ {
		if len(bytes.TrimSpace(line)) > 0 {
			if err := r.line(number, line); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
		if line, more, err = nextLine(in); err != nil {
			return err
		}
	}
}

// nextLine returns a line without its line end. The result more reports whether more text follows.
func nextLine(in *bufio.Reader) (line []byte, more bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, false, fmt.Errorf("a line of more than %d MiB", maxLine>>20)
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return line, false, nil
		case err != nil:
			return nil, false, err
		default:
			return line, true, nil
		}
	}
}

// line reads a value that is on one line.
func (r *reader) line(number int, line []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		r.skip(number, fmt.Errorf("no JSON: %w", err))
		return nil
	}
	return r.value(number, value, line)
}

// stream reads values one after the other. After a wrong value, it cannot continue.
func (r *reader) stream(in io.Reader) error {
	decoder := json.NewDecoder(in)
	decoder.UseNumber()
	for number := 1; ; number++ {
		var value any
		switch err := decoder.Decode(&value); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("no JSON at byte %d: %w", decoder.InputOffset(), err)
		}
		if err := r.value(number, value, nil); err != nil {
			return err
		}
	}
}

// value reads a record, a list of records, or a page or a bucket of OpenAI's usage. The parameter text is the text of
// the value, or nil if it is unknown.
func (r *reader) value(number int, value any, text []byte) error {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			if err := r.value(number, item, nil); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		f := fields(v)
		if data, ok := v["data"].([]any); ok && f.text("object") == "page" {
			return r.value(number, data, nil)
		}
		if results, ok := v["results"].([]any); ok {
			return r.bucket(number, f, results)
		}
		if _, ok := v["num_model_requests"]; ok {
			return r.result(number, f, f)
		}
		return r.record(number, f, text)
	}
	r.skip(number, errors.New("not a JSON object"))
	return nil
}

// record reads the record of one request.
func (r *reader) record(number int, f fields, text []byte) error {
	r.noteFormat(formatLines)
	at, took, err := f.times()
	if err != nil {
		r.skip(number, err)
		return nil
	}
	if text == nil {
		if text, err = json.Marshal(f); err != nil {
			return err
		}
	}
	u, known := scan(text)
	if !known { // the usage is in the other members
		u, known = scan(slices.Concat([]byte(`{"usage":`), text, []byte("}")))
	}
	if !known {
		r.skip(number, errors.New("no usage in the form of a known API"))
		return nil
	}
	return r.addOne(Request{At: at, Took: took, Key: r.keyOf(f), Model: f.firstText(modelNames), Cost: r.options.Counts.Cost(u)})
}

// scan returns the usage that a document has.
func scan(text []byte) (usage.Usage, bool) {
	s := usage.NewScanner("application/json", usage.Models)
	s.Write(text)
	s.End()
	u, known, _ := s.Usage()
	return u, known
}

// bucket reads the sums of an interval.
func (r *reader) bucket(number int, bucket fields, results []any) error {
	for _, item := range results {
		f, ok := item.(map[string]any)
		if !ok {
			r.skip(number, errors.New("a result that is not a JSON object"))
			continue
		}
		if err := r.result(number, bucket, f); err != nil {
			return err
		}
	}
	return nil
}

// result reads one sum. Its time is the interval of the bucket.
func (r *reader) result(number int, bucket, f fields) error {
	r.noteFormat(formatOpenAI)
	at, period, err := bucket.times()
	var n, input, cached, output uint64
	for name, dest := range map[string]*uint64{
		"num_model_requests": &n, "input_tokens": &input, "input_cached_tokens": &cached, "output_tokens": &output,
	} {
		count, countErr := f.count(name)
		*dest, err = count, errors.Join(err, countErr)
	}
	if err == nil && (period < 0 || n > 1 && period < time.Second) {
		err = fmt.Errorf("a sum of %d requests over %v: want a start_time and a later end_time", n, period)
	}
	if err != nil {
		r.skip(number, err)
		return nil
	}
	if n == 0 && input+output == 0 {
		return nil // an interval without requests
	}
	u := usage.Usage{Input: input, Cached: min(cached, input), Output: output, Total: input + output}
	return r.addSum(Request{At: at, Key: r.keyOf(f), Model: f.firstText(modelNames), Cost: r.options.Counts.Cost(u)}, n, period)
}

// table reads a table. The first line has the names of the columns. The separator is a comma, a semicolon or a tab.
func (r *reader) table(in *bufio.Reader) error {
	start, err := in.Peek(in.Size())
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	first, _, _ := bytes.Cut(start, []byte("\n"))
	rows := csv.NewReader(in)
	rows.FieldsPerRecord, rows.LazyQuotes = -1, true
	for _, separator := range []rune{';', '\t'} {
		if bytes.ContainsRune(first, separator) && !bytes.ContainsRune(first, ',') {
			rows.Comma = separator
		}
	}
	names, err := rows.Read()
	if err != nil {
		return fmt.Errorf("neither JSON nor a table: %w", err)
	}
	names = slices.Clone(names)
	names[0] = string(bytes.TrimPrefix([]byte(names[0]), []byte("\xef\xbb\xbf")))
	if len(names) < 2 {
		return fmt.Errorf("neither JSON nor a table: its first line is %.60q", names[0])
	}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		number, _ := rows.FieldPos(0)
		if err := r.row(number, names, row); err != nil {
			return err
		}
	}
}

// row reads a row of a table.
func (r *reader) row(number int, names, row []string) error {
	if len(row) != len(names) {
		r.skip(number, fmt.Errorf("%d columns, and the first line names %d", len(row), len(names)))
		return nil
	}
	f, isSum := fields{}, false
	for i, name := range names {
		if isSum = isSum || name == "num_model_requests"; row[i] != "" {
			f[name] = row[i]
		}
	}
	if isSum {
		return r.result(number, f, f)
	}
	at, took, err := f.times()
	var cost uint64
	if err == nil {
		cost, err = f.cost(r.options.Counts)
	}
	if err != nil {
		r.skip(number, err)
		return nil
	}
	r.noteFormat(formatTable)
	return r.addOne(Request{At: at, Took: took, Key: r.keyOf(f), Model: f.firstText(modelNames), Cost: cost})
}

// cost returns the cost that a row of a table has.
func (f fields) cost(counts usage.Weights) (uint64, error) {
	numbers := map[string]json.Number{}
	for name := range f {
		if text := f.text(name); isCount(text) {
			numbers[name] = json.Number(text)
		}
	}
	text, err := json.Marshal(map[string]any{"usage": numbers})
	if err != nil {
		return 0, err
	}
	u, known := scan(text)
	if !known {
		return 0, errors.New("no known column of tokens, such as input_tokens and output_tokens")
	}
	return counts.Cost(u), nil
}

// isCount reports whether a text is a whole number.
func isCount(text string) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return text != "" && (text == "0" || text[0] != '0')
}
