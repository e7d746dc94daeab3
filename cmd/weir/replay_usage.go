package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/weir-go/weir/cmd/internal/limit"
	"github.com/weir-go/weir/cmd/internal/replay"
	"github.com/weir-go/weir/cmd/internal/report"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/suggest"
	"github.com/weir-go/weir/cmd/internal/usage"
	"github.com/weir-go/weir/cmd/internal/usagelog"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/atomicfile"
)

// usageFlags has the flags for a replay of what requests to language models have cost.
type usageFlags struct {
	Usage    bool     `help:"The files say what requests to language models cost: lines of JSON with the usage of an answer, or the usage of an OpenAI organization. --limit is of tokens."`
	By       string   `placeholder:"FIELD" help:"With --usage, the field that has the key, such as metadata.team (default: the first of the usual ones)."`
	Estimate []string `placeholder:"LIST" help:"With --usage, what a request holds before its cost is known: learned, none, numbers of tokens, separated by commas (default: learned, the mean cost, none)."`
	Count    string   `enum:"total,input,output" default:"total" placeholder:"WHAT" help:"With --usage, which tokens count: total, input or output (default: ${default})."`
}

// countWeights says which tokens each word of --count counts.
var countWeights = map[string]usage.Weights{"total": usage.Total, "input": usage.InputOnly, "output": usage.OutputOnly}

// checkUsage returns an error if a flag cannot be used with --usage, or cannot be used without it.
func (c *replayCommand) checkUsage() error {
	if !c.Usage {
		for _, name := range []string{"by", "estimate", "count"} {
			if c.given[name] {
				return limit.Misuse("--%s: it needs --usage: add that, or leave it out", name)
			}
		}
		return nil
	}
	for _, name := range []string{"rules", "compare", "host", "client", "format"} {
		if c.given[name] {
			return limit.Misuse("--%s: it is for access logs, and --usage is not: leave one of the two out", name)
		}
	}
	if !c.given["limit"] && !c.wantsSuggestion() {
		return limit.Misuse("--usage: set the tokens of each key with --limit, such as 100000/m, or use --suggest")
	}
	return nil
}

func (c *replayCommand) replayUsage(out, notes io.Writer) (err error) {
	policy, err := c.Policy()
	if err != nil {
		return err
	}
	goal, err := c.goal()
	if err != nil {
		return err
	}
	var estimates []replay.Estimate
	for _, text := range c.Estimate {
		e, err := replay.ParseEstimate(text)
		if err != nil {
			return limit.Misuse("--estimate %w", err)
		}
		estimates = append(estimates, e)
	}
	log, err := usagelog.Read(c.Files, usagelog.Options{Key: c.By, Counts: countWeights[c.Count]})
	if err != nil {
		return err
	}
	r, err := replay.NewUsage(log, c.wantsSuggestion())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var suggestion *suggest.Suggestion
	if c.wantsSuggestion() {
		if suggestion, err = suggestTokens(r, policy, goal); err != nil {
			return err
		}
		switch p := suggestion.Point(); {
		case c.given["limit"]:
		case p == nil:
			return fmt.Errorf("no limit is suggested, because %s: set one with --limit", suggestion.Reason)
		default:
			policy = p.Policy
		}
	}
	if err := r.Try(policy, estimates); err != nil {
		return err
	}
	return c.writeUsage(r, suggestion, out, notes)
}

// suggestTokens finds a limit with the algorithm of a policy. In a usage log, keys are usually teams, so there are
// few. If there are fewer than a hundred keys per day, no key counts as abusive. The suggested limit then refuses
// nothing.
func suggestTokens(r *replay.UsageReport, policy engine.Policy, goal suggest.Goal) (*suggest.Suggestion, error) {
	rule := rulefile.NewRule("tokens")
	rule.Policy = policy
	bar := newBar(os.Stderr, 1, "searching")
	defer bar.finish()
	suggestion, err := suggest.Find(&rule, r.Trace, r.Names, goal, bar.step)
	if err == nil && goal.Abusive && suggestion.KeyDays < 100 {
		return suggest.Find(&rule, r.Trace, r.Names, suggest.Goal{}, bar.step)
	}
	return suggestion, err
}

func (c *replayCommand) writeUsage(r *replay.UsageReport, suggestion *suggest.Suggestion, out, notes io.Writer) error {
	source := c.Files[0]
	if n := len(c.Files); n > 1 {
		source = fmt.Sprintf("%d files", n)
	} else if source == "-" {
		source = "standard input"
	}
	source = fmt.Sprintf("%s (%s)", source, r.Format)
	top := defaultTop
	if c.Top != nil {
		top = int(min(*c.Top, 1<<31-1))
	}
	if c.HTML != "" {
		page := &report.UsagePage{Source: source, Top: top, Report: r, Suggestion: suggestion}
		if err := atomicfile.Write(c.HTML, page.Write); err != nil {
			return err
		}
	}
	if c.JSON {
		writeNotes(&r.Log, notes)
		return report.WriteUsageJSON(out, r, suggestion)
	}
	if _, err := fmt.Fprintf(out, "%s at %v of tokens\n\n", source, r.Policy); err != nil {
		return err
	}
	if err := r.WriteTable(out, top); err != nil || suggestion == nil {
		return err
	}
	return suggestion.WriteTable(out, "tokens")
}
