package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/cmd/internal/limit"
	"github.com/weir-go/weir/cmd/internal/replay"
	"github.com/weir-go/weir/cmd/internal/report"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/suggest"
	"github.com/weir-go/weir/internal/atomicfile"
)

// rulesFlags has the flags for a replay of rules. Without a rule file, the flags that describe a limit stand for a file
// with one rule.
type rulesFlags struct {
	Rules         string  `placeholder:"FILE" help:"Replay through the rules of a file (YAML, as weir check reads it) instead of one limit."`
	Host          string  `placeholder:"NAME" help:"The host of the requests if the log does not have it, for rules that match or count by the host."`
	Suggest       bool    `help:"Find for each rule the limit that would refuse only clients that ask for far more than others."`
	RefuseClients *string `placeholder:"SHARE" help:"Find for each rule the limit that would refuse at most this share of its clients (its keys) instead, such as 0.1%."`
	HTML          string  `name:"html" placeholder:"FILE" help:"Also write the result as a page with charts."`
}

func (f *rulesFlags) isSet() bool {
	return f.Rules != "" || f.Host != "" || f.wantsSuggestion() || f.HTML != ""
}

func (f *rulesFlags) wantsSuggestion() bool { return f.Suggest || f.RefuseClients != nil }

// goal says which keys the suggested limit may refuse.
func (f *rulesFlags) goal() (suggest.Goal, error) {
	if f.RefuseClients == nil {
		return suggest.Goal{Abusive: true}, nil
	}
	percent, err := strconv.ParseFloat(strings.TrimSuffix(*f.RefuseClients, "%"), 64)
	if err != nil || !(percent >= 0 && percent < 100) {
		return suggest.Goal{}, limit.Misuse("--refuse-clients %q: want a share in percent, 0 up to, not including, 100, such as 0.1%%",
			*f.RefuseClients)
	}
	return suggest.Goal{Percent: percent}, nil
}

// prepareRules returns the replay with the rules of a file, or with the rule of the flags.
func (c *replayCommand) prepareRules() (replayFunc, error) {
	if _, err := c.goal(); err != nil {
		return nil, err
	}
	file, err := c.ruleFile()
	if err != nil {
		return nil, err
	}
	return func(log *accesslog.Log) (replayResult, error) {
		r, err := replay.RunRules(file, replay.RulesOptions{Host: c.Host, Trace: c.wantsSuggestion()}, log)
		if err != nil {
			return replayResult{}, err
		}
		return replayResult{limit: file.Name, log: &r.Log, rules: r}, nil
	}, nil
}

// ruleFile reads the file of --rules, or makes a file from the flags.
func (c *replayCommand) ruleFile() (*rulefile.File, error) {
	if c.Rules == "" {
		if c.Host != "" {
			return nil, limit.Misuse("--host %s: it needs --rules, because only rules match by host: use --rules FILE, or leave it out", c.Host)
		}
		return c.singleRule()
	}
	if err := c.given.checkUnused(definedBy(c.Rules), slices.Concat(limitFlags, []string{"compare"})...); err != nil {
		return nil, err
	}
	return loadRules(c.Rules)
}

func (c *replayCommand) singleRule() (*rulefile.File, error) {
	if c.Compare {
		return nil, limit.Misuse("--compare: it goes with neither --suggest nor --refuse-clients nor --html: leave one of them out")
	}
	policy, err := c.Policy()
	if err != nil {
		return nil, err
	}
	rule := rulefile.NewRule("limit")
	rule.Policy, rule.MaxKeys = policy, c.MaxKeys
	return rulefile.Single(rule), nil
}

// writeRules prints the results of each rule and the suggestions. It also writes the page.
func (c *replayCommand) writeRules(name string, r *replay.RulesReport, out, notes io.Writer) (err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	suggestions, err := c.suggestions(r)
	if err != nil {
		return err
	}
	top := defaultTop
	if c.Top != nil {
		top = int(min(*c.Top, 1<<31-1))
	}
	if c.HTML != "" {
		page := &report.Page{Source: name, Rules: c.Rules, Top: top, Report: r, Suggestions: suggestions}
		if err := atomicfile.Write(c.HTML, page.Write); err != nil {
			return err
		}
	}
	if c.JSON {
		writeNotes(&r.Log, notes)
		return report.WriteJSON(out, r, suggestions)
	}
	if _, err := fmt.Fprintf(out, "%s at %s\n\n", name, c.limitName(r)); err != nil {
		return err
	}
	if err := r.WriteTable(out, top); err != nil {
		return err
	}
	for i, s := range suggestions {
		if s == nil {
			continue
		}
		if err := s.WriteTable(out, r.Rules[i].Rule.Name); err != nil {
			return err
		}
	}
	return nil
}

func (c *replayCommand) limitName(r *replay.RulesReport) string {
	if c.Rules != "" {
		return "the rules of " + c.Rules
	}
	return fmt.Sprintf("%v, by %s", r.Rules[0].Policy, c.Key)
}

func (c *replayCommand) suggestions(r *replay.RulesReport) ([]*suggest.Suggestion, error) {
	goal, err := c.goal()
	if err != nil || !c.wantsSuggestion() {
		return nil, err
	}
	suggestions := make([]*suggest.Suggestion, len(r.Rules))
	for i := range r.Rules {
		rule := &r.Rules[i]
		if rule.Blind != "" {
			continue
		}
		bar := newBar(os.Stderr, 1, "searching "+rule.Rule.Name)
		suggestions[i], err = suggest.Find(rule.Rule, rule.Trace, rule.Names, goal, bar.step)
		bar.finish()
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", rule.Rule.Name, err)
		}
	}
	return suggestions, nil
}
