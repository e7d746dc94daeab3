package quotas

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
)

// A Field reads the limit of a request from a header field that a trusted server has written. The syntax is that of
// RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers, versions 8 to 10). A Field is immutable.
type Field struct {
	// Limit is the limit of requests without the field. Its Quota is the largest limit that a field may set, in tokens.
	Limit spec.Limit
	// Name is the value of the item to use.
	Name string
	// Unit is the unit that the item's parameter qu must name, if the item has this parameter. "" means "requests".
	Unit string
}

// maxField, maxItems and maxParams bound the bytes, items and parameters of a field that is parsed.
const maxField, maxItems, maxParams = 4096, 64, 256

// An Item is an item of the field. Value is a String or a Token, of any Go type whose kind is string. The function
// Param returns the value of a parameter, with an int64 for an Integer.
type Item struct {
	Value any
	Param func(name string) (value any, ok bool)
}

// Read returns the limit of a request from the lines of a field. It looks for the item whose value is f.Name, which
// allows q tokens in w seconds. If the item has no w, the period is that of the rate of f.Limit. If q is 0, all
// requests are refused. ok is false if there is no such item.
//
// The function parse parses the list by RFC 9651. The function item converts a member, and returns the zero Item if the
// member is not an item.
//
// Read returns an error for more than 4,096 bytes, 64 items or 256 parameters, for two items with the value f.Name, and
// for an item that is not a text. It also returns an error for a parameter of another type or out of range, and for a
// limit that does not fit ([spec.Limit.Other]).
func Read[M any, L ~[]M](f *Field, lines []string, parse func([]string) (L, error), item func(M) Item) (p engine.Policy, ok bool, err error) {
	if len(lines) == 0 {
		return p, false, nil
	}
	if err := checkBounds(lines); err != nil {
		return p, false, err
	}
	list, err := parse(lines)
	if err != nil {
		return p, false, err
	}
	var found Item
	isFound := false
	for _, member := range list {
		i := item(member)
		name := reflect.ValueOf(i.Value)
		switch {
		case name.Kind() != reflect.String:
			return p, false, fmt.Errorf("an item of the type %T: want a text", i.Value)
		case name.String() != f.Name:
		case isFound:
			return p, false, fmt.Errorf("two items %q: want one", f.Name)
		default:
			found, isFound = i, true
		}
	}
	if !isFound {
		return p, false, nil
	}
	n, err := f.numbers(&found)
	if err == nil {
		p, err = f.Limit.Other(n)
	}
	if err != nil {
		return engine.Policy{}, false, fmt.Errorf("item %q: %w", f.Name, err)
	}
	return p, true, nil
}

// checkBounds returns an error for lines whose parsing would take much time or memory. It never counts fewer items and
// parameters than a parser would parse before the first syntax error.
func checkBounds(lines []string) error {
	length, items, params := 0, 1, 0
	for _, line := range lines {
		length += len(line)
	}
	if length > maxField {
		return fmt.Errorf("%d bytes: want at most %d", length, maxField)
	}
	field := strings.Join(lines, ",")
	for i := 0; i < len(field); i++ {
		switch field[i] {
		case ',':
			items++
		case ';':
			params++
		case '(':
			return errors.New("a list in the list: want items")
		case '"':
			escapes := i == 0 || field[i-1] != '%' // a Display String has no escapes with a backslash
			for i++; i < len(field) && field[i] != '"'; i++ {
				if field[i] == '\\' && escapes {
					i++
				}
			}
		}
	}
	switch {
	case items > maxItems:
		return fmt.Errorf("%d items: want at most %d", items, maxItems)
	case params > maxParams:
		return fmt.Errorf("%d parameters: want at most %d", params, maxParams)
	}
	return nil
}

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
	if unit, hasUnit := item.Param("qu"); hasUnit && unit != f.unit() {
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
