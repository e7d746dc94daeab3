// Package wrk measures a web server with wrk, and reads what it prints.
package wrk

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"time"
)

// Every run is alike: one thread, so that wrk leaves processors to what it measures, and so many connections.
const (
	Threads     = 1
	Connections = 32
)

// Header is the field with a client's name, and Clients the number of names that Script sends.
const (
	Header  = "X-Client"
	Clients = 1000
)

// Script returns what makes wrk send the names of Clients clients in turn. The requests are made
// before the clock starts.
func Script() string {
	return fmt.Sprintf(`local requests, n = {}, 0

function init()
  for i = 1, %d do
    requests[i] = wrk.format("GET", "/", {["%s"] = "client-" .. 100000 + i})
  end
end

function request()
  n = n %% %d + 1
  return requests[n]
end
`, Clients, Header, Clients)
}

// Run measures the server at a URL for so many seconds; program is wrk, and script the file with
// Script.
func Run(ctx context.Context, program, script, url string, seconds int) (Result, error) {
	const patience = 30 * time.Second // for connections that hang at the end
	timed, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+patience)
	defer cancel()
	cmd := exec.CommandContext(timed, program,
		"-t"+strconv.Itoa(Threads), "-c"+strconv.Itoa(Connections), "-d"+strconv.Itoa(seconds)+"s",
		"--latency", "-s", script, url)
	out, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return Result{}, ctx.Err()
	case timed.Err() != nil:
		return Result{}, fmt.Errorf("wrk was still at work %v after its time", patience)
	case err != nil:
		return Result{}, fmt.Errorf("wrk: %w: %s", err, out)
	}
	return Parse(string(out))
}
