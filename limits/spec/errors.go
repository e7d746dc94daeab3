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
func (e *Error) Error() string { return e.text("tier") }

// text returns the text of Error, with the argument word instead of "tier".
func (e *Error) text(word string) string {
	if e.Tier != "" {
		return fmt.Sprintf("%s %q: %s", word, e.Tier, e.Message)
	}
	return e.Message
}

// Errors has all problems of a limit.
type Errors []*Error

// Error returns one sentence for each error.
func (e Errors) Error() string {
	texts := make([]string, len(e))
	for i, problem := range e {
		texts[i] = problem.Error()
	}
	return strings.Join(texts, "; ")
}

// planErrors has the errors of a limit whose tiers are called plans.
type planErrors struct{ Errors }

func (o planErrors) Error() string {
	texts := make([]string, len(o.Errors))
	for i, problem := range o.Errors {
		texts[i] = problem.text("plan")
	}
	return strings.Join(texts, "; ")
}

func (o planErrors) Unwrap() error { return o.Errors }

// ErrorsOf returns the [Errors] that an error of [Limit.Policies] contains, or nil for nil.
func ErrorsOf(err error) Errors {
	var problems Errors
	errors.As(err, &problems)
	return problems
}

func (e *Errors) add(tier, key, format string, args ...any) {
	*e = append(*e, &Error{tier, key, fmt.Sprintf(format, args...)})
}
