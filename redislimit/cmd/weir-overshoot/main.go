// Command weir-overshoot measures how many tokens several nodes admit in total if they share a limit. It uses a real
// redis-server, and one process for each node.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weir-go/weir/internal/atomicfile"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/overshoot"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) == 2 && os.Args[1] == "node" {
		err = overshoot.Node(ctx, os.Stdin, os.Stdout)
	} else {
		err = run(ctx, os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "weir-overshoot:", err)
		os.Exit(1)
	}
}

type report struct {
	Cost    overshoot.Cost     `json:"cost"`
	Results []overshoot.Result `json:"results"`
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("weir-overshoot", flag.ExitOnError)
	quick := flags.Bool("quick", false, "3 s for each scenario and way, not 10")
	jsonTo := flags.String("json", "", "write everything that was measured to this `file`")
	markdown := flags.Bool("markdown", false, "print nothing but the tables and the cost, as Markdown")
	wayList := flags.String("ways", strings.Join(overshoot.Ways(), ","), "the ways to measure, with commas")
	loads := flags.String("loads", "", "measure only loads whose name contains this `text`")
	cost := flags.Uint64("cost", 0, "what every request costs, in `tokens`; 0 for the costs of the loads")
	binary := flags.String("redis-server", "redis-server", "the server's `program`")
	_ = flags.Parse(args) // exits on an error
	ways := strings.Split(*wayList, ",")
	for _, way := range ways {
		if !slices.Contains(overshoot.Ways(), way) {
			return fmt.Errorf("--ways: %q: want some of %s", way, strings.Join(overshoot.Ways(), ","))
		}
	}
	progress := io.Writer(os.Stderr)
	if *markdown {
		progress = io.Discard
	}
	r, err := measure(ctx, *binary, *loads, *cost, ways, *quick, progress)
	if err != nil {
		return err
	}
	if err := overshoot.Markdown(os.Stdout, r.Results); err != nil {
		return err
	}
	fmt.Print("\nAs in docs/distributed.md:\n\n")
	if err := overshoot.Tables(ctx, os.Stdout, r.Results); err != nil {
		return err
	}
	fmt.Printf("\nA decision with tokens in hand: %.1f ns, of package engine %.1f ns; ratio %.2f (%.2f to %.2f in %d rounds).\n",
		r.Cost.Lease, r.Cost.Engine, r.Cost.Ratio, r.Cost.Least, r.Cost.Most, r.Cost.Rounds)
	if *jsonTo == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return atomicfile.Write(*jsonTo, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

func measure(ctx context.Context, binary, loads string, cost uint64, ways []string, quick bool, progress io.Writer) (r report, err error) {
	program, err := os.Executable()
	if err != nil {
		return r, err
	}
	s, err := overshoot.StartServer(ctx, binary)
	if err != nil {
		return r, err
	}
	defer s.Close()
	store, err := redislimit.Open(ctx, "redis://"+s.Address)
	if err != nil {
		return r, err
	}
	r.Cost, err = overshoot.MeasureCost(ctx, store, 11)
	_ = store.Close() // always nil
	if err != nil {
		return r, err
	}
	runTime := 10 * time.Second
	if quick {
		runTime = 3 * time.Second
	}
	for _, scenario := range overshoot.Scenarios(runTime) {
		if !strings.Contains(scenario.Name, loads) {
			continue
		}
		if cost > 0 {
			scenario.Costs = []uint64{cost}
			scenario.Name += fmt.Sprintf(", cost %d", cost)
		}
		for _, way := range scenario.Ways() {
			if !slices.Contains(ways, way) {
				continue
			}
			result, err := runOnTime(ctx, s, scenario, way, program, progress)
			if err != nil {
				return r, fmt.Errorf("%s, %s: %w", scenario.Name, way, err)
			}
			r.Results = append(r.Results, result)
		}
	}
	return r, nil
}

// A run with requests that come later than tooLate is repeated, because other programs used the machine.
const (
	tooLate = 100 * time.Millisecond
	tries   = 3
)

func runOnTime(ctx context.Context, s *overshoot.Server, scenario overshoot.Scenario, way, self string, progress io.Writer) (r overshoot.Result, err error) {
	for try := range tries {
		r, err = overshoot.Run(ctx, s, scenario, way, self, "node")
		if err != nil {
			return r, err
		}
		fmt.Fprintf(progress, "%s, %s: %.2f %% of exactly, %.3f %% falsely refused; %d admitted, %d exactly; %.0f calls/s; errors %d (%s), lost %d, late %v\n",
			scenario.Name, way, r.OfExact, r.Falsely, r.Admitted, r.Exact, r.Calls, r.Errors, r.Error, r.Lost, r.Late)
		if r.Late <= tooLate {
			return r, nil
		}
		fmt.Fprintf(progress, "the load came late: try %d of %d\n", try+1, tries)
	}
	return r, nil
}
