package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/weir-go/weir/cmd/internal/limit"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/rules"
	"github.com/weir-go/weir/cmd/internal/serve"
	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

// runTests runs the tests in a file. If some results are not as expected, the error is a [yamlfile.Errors].
func runTests(f *rulefile.File) error {
	var failed yamlfile.Errors
	for i := range f.Tests {
		t := &f.Tests[i]
		differences, err := runTest(f, t)
		if err != nil {
			return err
		}
		for _, message := range differences {
			failed = append(failed, &yamlfile.Error{
				File: f.Name, Line: t.Line, Column: t.Column, Message: "test " + t.Request.Line + ": " + message,
			})
		}
	}
	if failed != nil {
		return failed
	}
	return nil
}

// runTest returns how the results of a test differ from what it expects. When a test starts, all limits are unused.
func runTest(f *rulefile.File, t *rulefile.Test) (differences []string, err error) {
	trial, err := serve.NewTrial(f)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, trial.Close()) }()
	r, err := t.Request.HTTPRequest()
	if err != nil {
		return nil, err
	}
	if t.Rules != nil {
		if got := ruleNames(trial.Counting(r)); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(t.Rules))) {
			differences = append(differences, fmt.Sprintf("want it counted by %s, got %s", joinNames(t.Rules), joinNames(got)))
		}
	}
	// send sends the request once more. It returns what is wrong with the answer, or "" if nothing is.
	send := func(want int) (string, error) {
		r, err := t.Request.HTTPRequest()
		if err != nil {
			return "", err
		}
		status, rule := trial.Ask(r, t.Answer)
		switch {
		case status == want:
			return "", nil
		case rule != "":
			return fmt.Sprintf("want %d, got %d by %s", want, status, rule), nil
		}
		return fmt.Sprintf("want %d, got %d", want, status), nil
	}
	for i := range t.Times {
		if difference, err := send(t.Status); err != nil || difference != "" {
			return append(differences, fmt.Sprintf("request %d: %s", i+1, difference)), err
		}
	}
	if t.Then != 0 {
		if difference, err := send(t.Then); err != nil || difference != "" {
			return append(differences, fmt.Sprintf("request %d, after %d times %d: %s", t.Times+1, t.Times, t.Status, difference)), err
		}
	}
	return differences, nil
}

func ruleNames(list []*rules.Rule) []string {
	names := make([]string, len(list))
	for i, rule := range list {
		names[i] = rule.Name
	}
	return names
}

func joinNames(names []string) string {
	if len(names) == 0 {
		return "no rule"
	}
	return strings.Join(names, ", ")
}

// request returns the request that the flags --explain, --client and --header describe.
func (c *checkCommand) request() (a rulefile.TestRequest, err error) {
	a = rulefile.TestRequest{Line: c.Explain, Client: rulefile.DefaultClient, Header: http.Header{}}
	if c.Client != "" {
		if a.Client, err = netip.ParseAddr(c.Client); err != nil || a.Client.Zone() != "" {
			return a, limit.Misuse("--client %q: want an address, such as 203.0.113.7", c.Client)
		}
	}
	for _, line := range c.Header {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return a, limit.Misuse("--header %q: want a name and a value, such as 'X-Plan: gold'", line)
		}
		a.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if _, err := a.HTTPRequest(); err != nil {
		return a, limit.Misuse("--explain %v", err)
	}
	return a, nil
}

// explain writes which rules count a request. For each other rule, it writes why the rule does not count it.
func explain(w io.Writer, f *rulefile.File, request rulefile.TestRequest) (err error) {
	trial, err := serve.NewTrial(f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, trial.Close()) }()
	r, err := request.HTTPRequest()
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s from %s\n", request.Line, request.Client)
	switch status, reason := trial.Answered(r); {
	case status != 0:
		fmt.Fprintf(&b, "\nis answered %d before any rule is asked: %s\n", status, reason)
	case trial.IsExempt(r):
		b.WriteString("\nis exempt: no rule is for it\n")
	default:
		counting := trial.Counting(r)
		for _, rule := range trial.Rules() {
			explainRule(&b, rule, r, slices.Contains(counting, rule))
		}
		fmt.Fprintf(&b, "\ncounted by %s\n", joinNames(ruleNames(counting)))
	}
	_, err = io.WriteString(w, b.String())
	return err
}

func explainRule(b *strings.Builder, rule *rules.Rule, r *http.Request, counts bool) {
	fmt.Fprintf(b, "\nrule %s\n", rule.Name)
	line := func(label, format string, args ...any) {
		fmt.Fprintf(b, "  %-7s %s\n", label, fmt.Sprintf(format, args...))
	}
	line("for", "%s", rule.Match)
	unmet := rule.Unmet(r)
	switch {
	case counts:
		line("key", "%s", strings.Join(rule.KeyTexts(r), ", "))
		line("limit", "%s", rule.LimitOf(r))
		if cost := rule.CostOf(r); cost != 1 {
			line("cost", "%d", cost)
		}
		if rule.Shadow {
			line("shadow", "it refuses nothing")
		}
	case len(unmet) > 0:
		line("not for", "this request, because of its %s", strings.Join(unmet, ", "))
	case rule.IsUnlimited(r):
		line("limit", "%s", rule.LimitOf(r))
	default:
		line("not for", "this request, because it has no key: %s", rule.Key)
	}
}
