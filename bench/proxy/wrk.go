package proxy

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"time"
)

// wrk uses one thread, which leaves the other processors to the server.
const (
	wrkThreads     = 1
	wrkConnections = 32
)

// clientHeader is the header field with the name of a client. clients is the number of different names.
const (
	clientHeader = "X-Client"
	clients      = 1000
)

// clientScript returns a script with which wrk sends all clients' names, in requests prepared before the measurement.
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

// runWrk measures the server at a URL. script is the path of a file with clientScript.
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
