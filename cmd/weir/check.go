package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/cmd/internal/limit"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/rules"
	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

type checkCommand struct {
	Quiet   bool     `short:"q" xor:"output" help:"Print nothing if the file has no mistakes."`
	JSON    bool     `name:"json" xor:"output" help:"Print one JSON object with the rules or the mistakes, and the warnings."`
	Schema  bool     `name:"schema" help:"Print the JSON Schema of rule files, for editors, without reading a file."`
	Explain string   `xor:"output" placeholder:"REQUEST" help:"Print which rules count a request, such as 'GET /login', and by which key, and why the others do not."`
	Client  string   `placeholder:"ADDRESS" help:"The client of the request of --explain (default: 192.0.2.1)."`
	Header  []string `sep:"none" placeholder:"NAME:VALUE" help:"A header of the request of --explain. May be repeated."`
	File    string   `arg:"" optional:"" predictor:"file" help:"The rule file (YAML); - for standard input."`
}

func (*checkCommand) Help() string {
	return `Says what the file means: where it listens, every rule in words, and the memory that they take. A file with mistakes
is answered with all of them, a line each, in the form FILE:LINE:COLUMN: what is wrong, and exit status 1. What is
allowed and probably not meant is a warning. Nothing is listened on, but certificates are read. The requests under tests
are made, each several times at one moment, and an answer that is not the expected one is a mistake.

Try it:

    weir check weir.yaml
    weir check weir.yaml --explain 'GET /login' --client 203.0.113.7`
}

func (c *checkCommand) Run() error {
	if c.Schema {
		schema, err := rulefile.Schema()
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(schema)
		return err
	}
	if c.File == "" {
		return limit.Misuse("which file? Name a rule file: weir check weir.yaml")
	}
	var request rulefile.TestRequest
	if c.Explain != "" {
		var err error
		if request, err = c.request(); err != nil {
			return err
		}
	} else if c.Client != "" || c.Header != nil {
		return limit.Misuse("--client and --header are for --explain: add --explain 'GET /login'")
	}
	f, err := c.load()
	if err == nil {
		err = compileRules(f)
	}
	if err == nil && c.Explain == "" {
		err = runTests(f)
	}
	if c.JSON {
		return c.writeJSON(os.Stdout, f, err)
	}
	if err != nil {
		return printMistakes(c.File, err)
	}
	for _, w := range warnings(f) {
		fmt.Fprintln(os.Stderr, "weir: warning:", w)
	}
	switch {
	case c.Quiet:
		return nil
	case c.Explain != "":
		return explain(os.Stdout, f, request)
	}
	fmt.Printf("%s is good%s\n\n", f.Name, testsPassed(len(f.Tests)))
	return f.Describe(os.Stdout)
}

// warnings returns warnings about parts of a valid file that are probably not intended.
func warnings(f *rulefile.File) []string {
	list := f.Warnings()
	if memory := f.MemoryWarning(); memory != "" {
		list = append(list, memory)
	}
	return list
}

func testsPassed(tests int) string {
	switch tests {
	case 0:
		return ""
	case 1:
		return ", and its test passes"
	}
	return fmt.Sprintf(", and its %d tests pass", tests)
}

func (c *checkCommand) load() (*rulefile.File, error) {
	if c.File != accesslog.Stdin {
		return rulefile.Load(c.File)
	}
	text, err := io.ReadAll(io.LimitReader(os.Stdin, rulefile.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read standard input: %w", err)
	}
	return rulefile.Parse("standard input", text)
}

// compileRules compiles the rules as a server does, and returns the error.
func compileRules(f *rulefile.File) error {
	ip, err := rules.ClientIP(f)
	if err != nil {
		return err
	}
	_, err = rules.Compile(f, ip)
	return err
}

// checkJSON has the fields that --json writes. Their names and order must not change. An empty list is [], not null.
type checkJSON struct {
	File     string        `json:"file"`
	Good     bool          `json:"good"`
	Mistakes []mistakeJSON `json:"mistakes"`
	Warnings []string      `json:"warnings"`
	Rules    []ruleJSON    `json:"rules"` // rules of a good file
}

type mistakeJSON struct {
	Line    int    `json:"line"` // from 1; 0 if the mistake has no place
	Column  int    `json:"column"`
	Message string `json:"message"`
}

type ruleJSON struct {
	Name   string `json:"name"`
	Match  string `json:"match"`
	Key    string `json:"key"`
	Policy string `json:"policy"`
	Shadow bool   `json:"shadow"`
	Stored bool   `json:"stored"`
	State  string `json:"state"` // file of the rule, or ""
	Bytes  uint64 `json:"bytes"`
	// Bound says how many tokens requests can cost at most. Each line is one term of a sum. For a rule without tokens,
	// it is [].
	Bound []string `json:"bound"`
}

// writeJSON writes everything about the file as JSON. It returns an error if the file has mistakes.
func (c *checkCommand) writeJSON(w io.Writer, f *rulefile.File, err error) error {
	out := checkJSON{File: c.File, Good: err == nil, Mistakes: []mistakeJSON{}, Warnings: []string{},
		Rules: []ruleJSON{}}
	var mistakes yamlfile.Errors
	switch {
	case errors.As(err, &mistakes):
		for _, e := range mistakes {
			out.Mistakes = append(out.Mistakes, mistakeJSON{e.Line, e.Column, e.Message})
		}
		err = mistakesError(c.File, mistakes)
	case err != nil:
		return err
	default:
		out.Warnings = append(out.Warnings, warnings(f)...)
		for i := range f.Rules {
			r := &f.Rules[i]
			bytes, err := r.Memory()
			if err != nil {
				return fmt.Errorf("rule %s: %w", r.Name, err)
			}
			out.Rules = append(out.Rules, ruleJSON{
				r.Name, r.Match.String(), r.Key.String(), r.OwnLimit(), r.Shadow, r.Store != nil, r.State, bytes, append([]string{}, r.Bound()...),
			})
		}
	}
	return errors.Join(json.NewEncoder(w).Encode(out), err)
}

// loadRules reads a rule file and prints its mistakes. Each mistake has a line, which begins as editors expect.
func loadRules(name string) (*rulefile.File, error) {
	f, err := rulefile.Load(name)
	return f, printMistakes(name, err)
}

// printMistakes prints the mistakes of a file, and returns an error that has their number. If err is another error, it
// returns this error unchanged.
func printMistakes(name string, err error) error {
	var mistakes yamlfile.Errors
	if !errors.As(err, &mistakes) {
		return err
	}
	fmt.Fprintln(os.Stderr, mistakes)
	return mistakesError(name, mistakes)
}

func mistakesError(name string, mistakes yamlfile.Errors) error {
	more := ""
	if len(mistakes) >= yamlfile.MaxErrors {
		more = " or more"
	}
	return fmt.Errorf("%s has mistakes: %d%s", name, len(mistakes), more)
}
