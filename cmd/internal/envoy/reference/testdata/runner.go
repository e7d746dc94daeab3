// Package runner replaces the package runner of envoyproxy/ratelimit's integration suite. It starts the program named
// by WEIR_ENVOY, with the suite's settings as environment variables, and reads statistics from the debug port.
package runner

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/envoyproxy/ratelimit/src/settings"
	gostats "github.com/lyft/gostats"
)

// Runner is one process.
type Runner struct {
	settings settings.Settings
	stats    *stats
	life     *life
}

type life struct {
	mu      sync.Mutex
	process *os.Process
	done    chan struct{}
}

// NewRunner prepares a process with these settings.
func NewRunner(s settings.Settings) Runner {
	return Runner{s, &stats{base: gostats.NewStore(gostats.NewNullSink(), false), port: s.DebugPort}, &life{done: make(chan struct{})}}
}

// GetStatsStore returns the statistics of the process.
func (r *Runner) GetStatsStore() gostats.Store { return r.stats }

// Run starts the process and waits until it has ended.
func (r *Runner) Run() {
	defer close(r.life.done)
	command := exec.Command(os.Getenv("WEIR_ENVOY"))
	command.Env = append(environment(r.settings), "HOST=127.0.0.1", "GRPC_HOST=127.0.0.1", "DEBUG_HOST=127.0.0.1",
		"PATH="+os.Getenv("PATH"), "SSL_CERT_FILE="+os.Getenv("SSL_CERT_FILE"))
	command.Stderr = os.Stderr
	r.life.mu.Lock()
	err := command.Start()
	r.life.process = command.Process
	r.life.mu.Unlock()
	if err != nil {
		panic(err)
	}
	if err := command.Wait(); err != nil {
		fmt.Fprintln(os.Stderr, "weir-envoy:", err)
	}
}

// Stop ends the process.
func (r *Runner) Stop() {
	r.life.mu.Lock()
	if r.life.process != nil {
		_ = r.life.process.Signal(syscall.SIGTERM)
	}
	r.life.mu.Unlock()
	<-r.life.done
}

func environment(s settings.Settings) []string {
	var variables []string
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("envconfig")
		if name == "" {
			continue
		}
		var text string
		switch value := v.Field(i).Interface().(type) {
		case map[string]string:
			var pairs []string
			for key, element := range value {
				pairs = append(pairs, key+":"+element)
			}
			text = strings.Join(pairs, ",")
		case []string:
			text = strings.Join(value, ",")
		case time.Duration:
			text = value.String()
		default:
			text = fmt.Sprint(value)
		}
		variables = append(variables, name+"="+text)
	}
	return variables
}

// base is the store of the suite. The type stats replaces its counters by counters with the values that the process
// reports.
type base = gostats.Store

type stats struct {
	base
	port int
}

func (s *stats) fetch(name string) uint64 {
	response, err := http.Get("http://127.0.0.1:" + strconv.Itoa(s.port) + "/stats")
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	defer io.Copy(io.Discard, response.Body)
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+": "); ok {
			n, _ := strconv.ParseUint(value, 10, 64)
			return n
		}
	}
	return 0
}

func (s *stats) NewCounter(name string) gostats.Counter {
	counter := s.base.NewCounter(name)
	counter.Set(s.fetch(name))
	return counter
}

// NewCounterWithTags leaves out the tags: the debug port has none.
func (s *stats) NewCounterWithTags(name string, _ map[string]string) gostats.Counter {
	return s.NewCounter(name)
}

func (s *stats) NewGauge(name string) gostats.Gauge {
	gauge := s.base.NewGauge(name)
	gauge.Set(s.fetch(name))
	return gauge
}
