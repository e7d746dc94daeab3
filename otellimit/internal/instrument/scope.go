package instrument

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

const (
	maxName       = 1024
	maxAttributes = 16
)

// A Scope has the properties that all metrics of one registration have in common.
type Scope struct {
	Caller     string               // the function that registers, for errors
	Kind       string               // what is registered; a name is registered once for each kind
	Key        attribute.Key        // the key of the attribute that has the name
	Name       string               // the value of that attribute
	Attributes []attribute.KeyValue // the attributes that the program adds
}

// An Option changes one thing about a scope.
type Option func(*Scope) error

// Apply applies the options, and checks the name.
func (s *Scope) Apply(options []Option) error {
	if err := CheckName(s.Name); err != nil {
		return s.error("%w", err)
	}
	for i, option := range options {
		if option == nil {
			return s.error("option %d of %d is nil", i+1, len(options))
		}
		if err := option(s); err != nil {
			return s.error("%w", err)
		}
	}
	return nil
}

// error returns an error that names the caller and what it registers.
func (s *Scope) error(format string, args ...any) error {
	return fmt.Errorf("%s(%.60q): %w", s.Caller, s.Name, fmt.Errorf(format, args...))
}

// CheckName returns an error for a bad name of a limit, a store or a front. httplimit and rpclimit refuse such names,
// too.
func CheckName(name string) error {
	for i := range len(name) {
		if name[i] < ' ' || name[i] > '~' {
			return errors.New("want a name of 1 to 1,024 printable ASCII characters")
		}
	}
	if name == "" || len(name) > maxName {
		return fmt.Errorf("a name of %d characters: want 1 to 1,024 that are printable ASCII", len(name))
	}
	return nil
}

// Add adds attributes of the program.
func (s *Scope) Add(attributes []attribute.KeyValue) error {
	s.Attributes = append(s.Attributes, attributes...)
	if len(s.Attributes) > maxAttributes {
		return fmt.Errorf("%d attributes: want %d at most", len(s.Attributes), maxAttributes)
	}
	keys := map[attribute.Key]bool{}
	for _, a := range s.Attributes {
		switch {
		case !a.Valid():
			return fmt.Errorf("the attribute %q has no key or no value", string(a.Key))
		case strings.HasPrefix(string(a.Key), "weir."), strings.HasPrefix(string(a.Key), "otel."), a.Key == "error.type":
			return fmt.Errorf("the attribute %q: want a key other than weir.*, otel.* and error.type", string(a.Key))
		case keys[a.Key]:
			return fmt.Errorf("the attribute %q occurs twice", string(a.Key))
		}
		keys[a.Key] = true
	}
	return nil
}

// observeOptions returns the attributes of a series as options for an observer.
func (s *Scope) observeOptions(extra []attribute.KeyValue) []metric.ObserveOption {
	return []metric.ObserveOption{metric.WithAttributeSet(s.set(extra))}
}

func (s *Scope) set(extra []attribute.KeyValue) attribute.Set {
	attributes := append([]attribute.KeyValue{s.Key.String(s.Name)}, s.Attributes...)
	return attribute.NewSet(append(attributes, extra...)...)
}

// A claim is a registered name. If a name were registered twice, two callbacks would report the same series. Depending
// on the SDK, the values would overwrite each other or be added up.
type claim struct {
	provider metric.MeterProvider
	kind     string
	set      string // the attributes that the series of the name have in common
}

var claims = struct {
	sync.Mutex
	names map[claim]bool
}{names: map[claim]bool{}}

// claim reserves the name until release is called.
func (s *Scope) claim(p metric.MeterProvider) (release func(), err error) {
	v := reflect.ValueOf(p)
	if p == nil || !v.Comparable() {
		return nil, s.error("a MeterProvider of type %T: want one such as otel.GetMeterProvider()", p)
	}
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, s.error("a nil MeterProvider of type %T: want one such as otel.GetMeterProvider()", p)
	}
	set := s.set(nil)
	c := claim{p, s.Kind, set.Encoded(attribute.DefaultEncoder())}
	claims.Lock()
	defer claims.Unlock()
	if claims.names[c] {
		return nil, s.error("the %s of that name and these attributes is registered already: want another name, another "+
			"attribute, or Unregister of the first", s.Kind)
	}
	claims.names[c] = true
	return func() {
		claims.Lock()
		defer claims.Unlock()
		delete(claims.names, c)
	}, nil
}
