package spec

import (
	"errors"
	"fmt"
	"strings"
)

// An Error describes one problem of a limit.
type Error struct {
	Tier    string // the name of the tier with the problem; "" for the limit's own numbers
	Key     string // the name of the number in configurations, such as "rate" or "max_wait"
	Message string // begins with the key if it would otherwise be unclear which number is wrong
}

// Error returns the message, after the name of the tier.
func (e *Error) Error() string { return e.of("tier") }

// The method of returns the text of Error, with the argument word instead of "tier".
func (e *Error) of(word string) string {
	if e.Tier != "" {
		return fmt.Sprintf("%s %q: %s", word, e.Tier, e.Message)
	}
	return e.Message
}

// Errors has all problems of a limit.
type Errors []*Error

// Error returns one sentence for each error.
func (es Errors) Error() string {
	all := make([]string, len(es))
	for i, e := range es {
		all[i] = e.Error()
	}
	return strings.Join(all, "; ")
}

// ofPlans has the errors of a limit whose tiers are called plans.
type ofPlans struct{ Errors }

func (o ofPlans) Error() string {
	all := make([]string, len(o.Errors))
	for i, e := range o.Errors {
		all[i] = e.of("plan")
	}
	return strings.Join(all, "; ")
}

func (o ofPlans) Unwrap() error { return o.Errors }

// ErrorsOf returns the [Errors] that an error of [Limit.Policies] contains, or nil for nil.
func ErrorsOf(err error) Errors {
	var es Errors
	errors.As(err, &es)
	return es
}

func (es *Errors) add(tier, key, format string, args ...any) {
	*es = append(*es, &Error{tier, key, fmt.Sprintf(format, args...)})
}
