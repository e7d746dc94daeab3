// Package child runs pieces of work in separate processes of the same program. If processors contend, a process can be
// slow or fast as long as it runs. So measurements in many processes are better than many measurements in one process.
//
// A child gets its work as JSON in an environment variable and answers with one line of JSON.
package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

const variable = "WEIR_BENCH_CHILD"

type order struct {
	Work string          `json:"work"`
	With json.RawMessage `json:"with"`
}

type answer struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// Work is something that a child can do.
type Work func(with json.RawMessage) (any, error)

// Of makes a Work from a function. The parameter and the result are passed as JSON.
func Of[T, R any](do func(T) (R, error)) Work {
	return func(raw json.RawMessage) (any, error) {
		var with T
		if err := json.Unmarshal(raw, &with); err != nil {
			return nil, err
		}
		return do(with)
	}
}

// Main does a child's work and returns true if this process is a child. Otherwise it returns false. A program must call
// Main before anything else.
func Main(all map[string]Work, out io.Writer) bool {
	text, ok := os.LookupEnv(variable)
	if !ok {
		return false
	}
	a := do(all, text)
	if err := json.NewEncoder(out).Encode(a); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func do(all map[string]Work, text string) (a answer) {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return answer{Error: fmt.Sprintf("%s=%s: %v", variable, text, err)}
	}
	work, ok := all[o.Work]
	if !ok {
		return answer{Error: fmt.Sprintf("%s: no such work", o.Work)}
	}
	result, err := work(o.With)
	if err != nil {
		return answer{Error: err.Error()}
	}
	if a.Result, err = json.Marshal(result); err != nil {
		return answer{Error: err.Error()}
	}
	return a
}

// Run does the named work in a child with GOMAXPROCS cores. The child gets the parameter with, and its answer is stored
// in result. Run kills a child that exceeds the time limit.
func Run(ctx context.Context, limit time.Duration, cores int, work string, with, result any) error {
	raw, err := json.Marshal(with)
	if err != nil {
		return err
	}
	text, err := json.Marshal(order{work, raw})
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(timed, program)
	cmd.Env = append(os.Environ(), variable+"="+string(text), "GOMAXPROCS="+strconv.Itoa(cores))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case timed.Err() != nil:
		return fmt.Errorf("ended after %v without a result", limit)
	case err != nil:
		return fmt.Errorf("%w: %s", err, firstLine(stderr.String()))
	}
	var a answer
	if err := json.Unmarshal(out, &a); err != nil {
		return fmt.Errorf("answer %q: %w", out, err)
	}
	if a.Error != "" {
		return errors.New(a.Error)
	}
	return json.Unmarshal(a.Result, result)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
