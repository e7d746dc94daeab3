package proxy

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"time"
)

// Every run uses one thread, so that the other processors are free for the server, and the same number of connections.
const (
	wrkThreads     = 1
	wrkConnections = 32
)

// clientHeader is the field with a client's name. clients is the number of names that clientScript sends.
const (
	clientHeader = "X-Client"
	clients      = 1000
)

// clientScript returns a script that makes wrk send the names of clients clients in turn. The script makes the requests
// before the measurement starts.
func clientScript() string {
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
`, clients, clientHeader, clients)
}

// runWrk measures the server at a URL for seconds seconds. program is wrk, and script is the file with clientScript.
func runWrk(ctx context.Context, program, script, url string, seconds int) (Load, error) {
	const patience = 30 * time.Second // for connections that do not close in time
	timed, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+patience)
	defer cancel()
	cmd := exec.CommandContext(timed, program,
		"-t"+strconv.Itoa(wrkThreads), "-c"+strconv.Itoa(wrkConnections), "-d"+strconv.Itoa(seconds)+"s",
		"--latency", "-s", script, url)
	out, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return Load{}, ctx.Err()
	case timed.Err() != nil:
		return Load{}, fmt.Errorf("wrk was still at work %v after its time", patience)
	case err != nil:
		return Load{}, fmt.Errorf("wrk: %w: %s", err, out)
	}
	return parseWrk(string(out))
}
