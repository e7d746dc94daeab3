package quotas

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/openfile"
	"github.com/weir-go/weir/limits/spec"
)

// MaxBytes is the size of the largest file that is read.
const MaxBytes = 4 << 30

// maxKey bounds a key, and maxLimit the text of a rate or burst, in bytes.
const maxKey, maxLimit = 4096, 256

// A Reader reads a [Table]. Its functions are called for each key, from the goroutine that reads.
type Reader struct {
	// Plans are the policies of plans by name.
	Plans map[string]engine.Policy
	// Policy returns the policy of the numbers, or an error that says what is wrong with them. See [spec.Quotas].
	Policy func(spec.Numbers) (engine.Policy, error)
	// Key converts a text in the file to the key that requests have; nil means the text itself.
	Key func(text string) (key string, err error)
}

// File reads a file of at most [MaxBytes]: JSON if its name ends in .json, otherwise CSV. An error names the line, but
// no key, because keys may be secrets. Reading needs memory for the complete file.
//
// A line of CSV has the form "key,plan", "key,rate" or "key,rate,burst". An empty burst counts as not set. A first line
// that is literally one of these three texts is a heading. Lines that begin with # are comments. JSON is an object
// whose names are keys. Each value is the name of a plan, a rate, or {"rate": "10/s", "burst": 20}, where rate or burst
// may be missing. A rate or a burst has at most 256 bytes.
//
// A duplicate key is an error, even with the same limit, and so is a file without keys: it is probably truncated.
func (r Reader) File(name string) (*Table, error) {
	file, info, err := openfile.Regular(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info.Size() > MaxBytes {
		return nil, fmt.Errorf("it has %d bytes: want at most %d", info.Size(), uint64(MaxBytes))
	}
	text := make([]byte, info.Size()+1)
	n, err := io.ReadFull(file, text)
	switch {
	case err == nil:
		return nil, errors.New("it grew while it was read")
	case !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF):
		return nil, err
	}
	if strings.EqualFold(filepath.Ext(name), ".json") {
		return r.JSON(text[:n])
	}
	return r.CSV(text[:n])
}

// CSV reads lines of CSV: see [Reader.File].
func (r Reader) CSV(text []byte) (*Table, error) {
	reader := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	reader.Comment, reader.ReuseRecord, reader.FieldsPerRecord = '#', true, -1
	b, cache := newBuilder(), policyCache{}
	err := eachLine(reader, func(fields []string) error {
		if len(fields) != 2 && len(fields) != 3 {
			return fmt.Errorf("%d fields: want key,plan or key,rate or key,rate,burst", len(fields))
		}
		burst := ""
		if len(fields) == 3 {
			burst = fields[2]
		}
		p, err := cache.policy(r, fields[1], burst)
		if err != nil {
			return err
		}
		return r.add(b, fields[0], p)
	})
	if err != nil {
		return nil, err
	}
	t, duplicate := b.build()
	if duplicate < 0 {
		return t.checkFilled()
	}
	// The line of the duplicate key is searched only now.
	reader = csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	reader.Comment, reader.ReuseRecord, reader.FieldsPerRecord = '#', true, -1
	return nil, eachLine(reader, func([]string) error {
		if duplicate--; duplicate < 0 {
			return errTwice
		}
		return nil
	})
}

// Pairs reads keys and their limits, such as the fields of a hash in Redis. The function visitAll calls yield for each
// pair. A limit is "plan", "rate" or "rate,burst", as in a line of CSV. If a key comes twice, the last limit applies.
// It is an error if there are no keys. An error names the number of the pair, counted from 1.
func (r Reader) Pairs(visitAll func(yield func(key, limit string) error) error) (*Table, error) {
	b, cache := newBuilder(), policyCache{}
	b.lastWins = true
	number := 0
	err := visitAll(func(key, limit string) error {
		number++
		rate, burst, _ := strings.Cut(limit, ",")
		p, err := cache.policy(r, rate, burst)
		if err == nil {
			err = r.add(b, key, p)
		}
		if err != nil {
			return fmt.Errorf("field %d: %w", number, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	t, _ := b.build()
	return t.checkFilled()
}

func (t *Table) checkFilled() (*Table, error) {
	if t.keys == 0 {
		return nil, errors.New("it has no keys: want at least one, because without any all requests would be under another limit")
	}
	return t, nil
}

// A policyCache has the policies that were parsed before. Its key is the text of the plan or rate, and the text of the
// burst.
type policyCache map[[2]string]engine.Policy

const maxKnown = 4096

func (c policyCache) policy(r Reader, limit, burst string) (p engine.Policy, err error) {
	p, found := c[[2]string{limit, burst}]
	if found {
		return p, nil
	}
	if p, err = r.policy(limit, burst); err == nil && len(c) < maxKnown {
		c[[2]string{strings.Clone(limit), strings.Clone(burst)}] = p
	}
	return p, err
}

var errTwice = errors.New("its key occurs twice")

// eachLine calls the function visit with the fields of every line except a heading. An error has the number of the
// line.
func eachLine(reader *csv.Reader, visit func(fields []string) error) error {
	for first := true; ; first = false {
		fields, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if parseErr := (*csv.ParseError)(nil); errors.As(err, &parseErr) {
			return fmt.Errorf("line %d, column %d: %w", parseErr.Line, parseErr.Column, parseErr.Err)
		}
		if err != nil {
			return err
		}
		if first && isHeading(fields) {
			continue
		}
		if err := visit(fields); err != nil {
			line, _ := reader.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

func isHeading(fields []string) bool {
	switch strings.Join(fields, ",") {
	case "key,plan", "key,rate", "key,rate,burst":
		return true
	}
	return false
}

func (r Reader) add(b *builder, text string, p engine.Policy) (err error) {
	if text == "" || len(text) > maxKey {
		return fmt.Errorf("a key of %d bytes: want 1 to %d", len(text), maxKey)
	}
	if r.Key != nil {
		if text, err = r.Key(text); err != nil {
			return err
		}
	}
	return b.add(text, p)
}

func (r Reader) policy(limit, burst string) (engine.Policy, error) {
	if p, ok := r.Plans[limit]; ok && burst == "" {
		return p, nil
	} else if ok {
		return p, fmt.Errorf("plan %q and burst %.64q: a plan has its own burst: leave this one out", limit, burst)
	}
	for _, text := range []string{limit, burst} {
		if len(text) > maxLimit {
			return engine.Policy{}, fmt.Errorf("%.64q and so on, %d bytes: want at most %d", text, len(text), maxLimit)
		}
	}
	var n spec.Numbers
	var err error
	if limit != "" {
		if n.Rate, err = spec.ParseRate(limit); err != nil {
			return engine.Policy{}, fmt.Errorf("%.64q: want the name of a plan, or a rate such as 10/s, 0 or unlimited", limit)
		}
	}
	if burst != "" {
		tokens, err := strconv.ParseUint(burst, 10, 64)
		if err != nil || tokens < 1 || tokens > spec.MaxBurst {
			return engine.Policy{}, fmt.Errorf("burst %.64q: want a whole number from 1 to %d", burst, uint64(spec.MaxBurst))
		}
		n.Burst = &tokens
	}
	return r.numbers(n)
}

func (r Reader) numbers(n spec.Numbers) (engine.Policy, error) {
	p, err := r.Policy(n)
	if err != nil {
		return p, fmt.Errorf("%s: %w", describe(n), err)
	}
	return p, nil
}

func describe(n spec.Numbers) string {
	text := "no rate"
	if n.Rate != (spec.Rate{}) {
		text = "rate " + n.Rate.String()
	}
	if n.Burst != nil {
		text += fmt.Sprintf(", burst %d", *n.Burst)
	}
	return text
}

// JSON reads an object: see [Reader.File].
func (r Reader) JSON(text []byte) (*Table, error) {
	b, cache := newBuilder(), map[string]engine.Policy{}
	err := eachMember(text, func(key string, value json.RawMessage) error {
		p, found := cache[string(value)]
		if !found {
			var err error
			if p, err = r.value(value); err != nil {
				return err
			}
			if len(cache) < maxKnown {
				cache[string(value)] = p
			}
		}
		return r.add(b, key, p)
	})
	if err != nil {
		return nil, err
	}
	t, duplicate := b.build()
	if duplicate < 0 {
		return t.checkFilled()
	}
	return nil, eachMember(text, func(string, json.RawMessage) error {
		if duplicate--; duplicate < 0 {
			return errTwice
		}
		return nil
	})
}

// eachMember calls the function visit for every member of a JSON object. An error has the number of the line.
func eachMember(text []byte, visit func(key string, value json.RawMessage) error) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	fail := func(err error) error {
		offset := decoder.InputOffset()
		if syntaxErr := (*json.SyntaxError)(nil); errors.As(err, &syntaxErr) {
			offset = syntaxErr.Offset
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the file ends in the middle")
		}
		return fmt.Errorf("line %d: %w", bytes.Count(text[:min(offset, int64(len(text)))], []byte("\n"))+1, err)
	}
	if token, err := decoder.Token(); err != nil {
		return fail(err)
	} else if token != json.Delim('{') {
		return fail(errors.New(`want an object, such as {"key": "plan"}`))
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return fail(err)
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return fail(err)
		}
		if err := visit(key.(string), value); err != nil { // the keys of a JSON object are strings
			return fail(err)
		}
	}
	if _, err := decoder.Token(); err != nil {
		return fail(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fail(errors.New("text after the object"))
	}
	return nil
}

func (r Reader) value(text json.RawMessage) (engine.Policy, error) {
	var limit string
	if json.Unmarshal(text, &limit) == nil && text[0] == '"' {
		if limit == "" {
			return engine.Policy{}, errors.New(`"": want the name of a plan, or a rate such as 10/s, 0 or unlimited`)
		}
		return r.policy(limit, "")
	}
	var n struct {
		Rate  string
		Burst *uint64
	}
	fields := map[string]any{"rate": &n.Rate, "burst": &n.Burst} // a struct would also accept RATE, and a second rate
	err := eachMember(text, func(name string, value json.RawMessage) error {
		target := fields[name]
		if delete(fields, name); target == nil {
			return errTwice
		}
		return json.Unmarshal(value, target)
	})
	if err != nil {
		return engine.Policy{}, fmt.Errorf(`%s: want the name of a plan, a rate such as "10/s", or {"rate": "10/s", "burst": 20}`, shorten(text))
	}
	burst := ""
	if n.Burst != nil {
		burst = strconv.FormatUint(*n.Burst, 10)
	}
	if _, isPlan := r.Plans[n.Rate]; isPlan {
		return engine.Policy{}, fmt.Errorf("rate %q: this is the name of a plan: write only the name, without an object", n.Rate)
	}
	return r.policy(n.Rate, burst)
}

func shorten(text []byte) string {
	const maxBytes = 60
	if len(text) > maxBytes {
		return string(text[:maxBytes]) + "..."
	}
	return string(text)
}
