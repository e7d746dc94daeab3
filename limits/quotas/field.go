package quotas

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
)

// A Field reads the limit of a request from a field that has the syntax of RateLimit-Policy
// (draft-ietf-httpapi-ratelimit-headers, versions 8 to 10) and that a trusted server has written. A library of the
// caller parses the list of items (RFC 9651). A Field does not change.
type Field struct {
	// Limit is the limit of requests without the field. Its Quota is the most tokens that another may have.
	Limit spec.Limit
	// Name is the value of the item that counts.
	Name string
	// Unit is the parameter qu of the item, if it has one; "" for requests.
	Unit string
}

// maxField is the longest field that is parsed, in bytes: the lines of a request together.
const maxField = 4096

// An Item is an item of the field. Its value is a text by its kind: a String or a Token. Param returns a parameter, an
// Integer as an int64.
type Item struct {
	Value any
	Param func(name string) (value any, ok bool)
}

// Read returns the limit that the item with the name says, of the lines of a field: q tokens, which come back in w
// seconds; without w, in the time of the limit's own rate. A q of 0 refuses. parse parses the lines. ok is false if no
// item has the name. More than 4,096 bytes, two items with the name, items that are no texts, parameters of other types
// or out of their ranges, and a limit that does not fit ([spec.Limit.Other]) are errors.
func (f *Field) Read(lines []string, parse func([]string) ([]Item, error)) (p engine.Policy, ok bool, err error) {
	length := 0
	for _, line := range lines {
		length += len(line)
	}
	if length > maxField {
		return p, false, fmt.Errorf("%d bytes: want at most %d", length, maxField)
	}
	items, err := parse(lines)
	if err != nil {
		return p, false, err
	}
	var found *Item
	for i := range items {
		name := reflect.ValueOf(items[i].Value)
		switch {
		case name.Kind() != reflect.String:
			return p, false, fmt.Errorf("an item of the type %T: want a text", items[i].Value)
		case name.String() != f.Name:
		case found != nil:
			return p, false, fmt.Errorf("two items %q: want one", f.Name)
		default:
			found = &items[i]
		}
	}
	if found == nil {
		return p, false, nil
	}
	n, err := f.numbers(found)
	if err == nil {
		p, err = f.Limit.Other(n)
	}
	if err != nil {
		return engine.Policy{}, false, fmt.Errorf("item %q: %w", f.Name, err)
	}
	return p, true, nil
}

// numbers returns those of an item.
func (f *Field) numbers(item *Item) (n spec.Numbers, err error) {
	q, ok, err := item.integer("q", 0, spec.MaxBurst)
	if err == nil && !ok {
		err = errors.New("no q, the number of tokens")
	}
	if err != nil {
		return n, err
	}
	w, ok, err := item.integer("w", 1, int64(spec.MaxWindow/time.Second))
	if err != nil {
		return n, err
	}
	if unit, has := item.Param("qu"); has && unit != f.unit() {
		return n, fmt.Errorf("qu=%q: want %q", fmt.Sprint(unit), f.unit())
	}
	switch {
	case q == 0:
		n.Rate = spec.Blocked
		return n, nil
	case ok:
		n.Rate = spec.Of(engine.Per(float64(q), time.Duration(w)*time.Second))
	case f.Limit.Rate.IsFixed():
		return n, fmt.Errorf("no w, and a rate of %v has no time", f.Limit.Rate)
	default:
		n.Rate = f.Limit.Rate
		n.Rate.Tokens = float64(q)
	}
	if spec.HasBurst(f.Limit.Algorithm) || f.Limit.Algorithm == engine.NoAlgorithm {
		tokens := uint64(q)
		n.Burst = &tokens
	}
	return n, nil
}

func (f *Field) unit() string {
	if f.Unit == "" {
		return "requests"
	}
	return f.Unit
}

// integer returns a parameter that is a whole number; not ok if it is not there.
func (i *Item) integer(name string, low, high int64) (n int64, ok bool, err error) {
	value, ok := i.Param(name)
	if !ok {
		return 0, false, nil
	}
	if n, ok = value.(int64); !ok || n < low || n > high {
		return 0, false, fmt.Errorf("%s=%v: want a whole number from %d to %d", name, value, low, high)
	}
	return n, true, nil
}
