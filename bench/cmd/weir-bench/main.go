// Command weir-bench compares weir with a floor, the minimum of work of any limiter, and with other projects' limiters.
// `weir bench` runs it.
package main

import (
	"os"

	"github.com/weir-go/weir/bench/child"
	"github.com/weir-go/weir/bench/cmd/internal/program"
	"github.com/weir-go/weir/bench/experiment"
)

const name = "weir-bench"

const description = `Measure weir beside the least that any limiter must do, and beside other libraries.

Exit status: 0 done, 80 the command line is wrong, 1 weir gave wrong decisions or the work failed. A missed target
is not a failure.`

func main() {
	if child.Main(experiment.All(), os.Stdout) {
		return
	}
	program.Run(&command{}, name, description)
}
