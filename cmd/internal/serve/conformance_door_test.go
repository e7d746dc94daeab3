package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/internal/promisetest"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/conformance"
)

// TestRedisDoorConformance runs the cases against the listener for clients of Redis. Limits come with commands, so the
// client here is what a program is that asks before it serves a request, and settles or refunds afterwards.
func TestRedisDoorConformance(t *testing.T) {
	conformance.Run(t, conformance.Front{Name: "Redis door", Promise: promisetest.Promise(1, nil), Start: startDoor})
}

// asking is a program that limits by a door.
type asking struct {
	env    *conformance.Env
	server *Server
	path   string
	stop   func()

	mu      sync.Mutex
	limits  []conformance.Limit
	conn    net.Conn
	answers *bufio.Reader
}

func startDoor(env *conformance.Env, c conformance.Config) (conformance.Server, error) {
	a := &asking{env: env, path: filepath.Join(env.T.TempDir(), "door.yaml")}
	file, err := a.write(c)
	if err != nil {
		return nil, err
	}
	a.server, err = Start(Config{
		File: file, Load: func() (*rulefile.File, error) { return rulefile.Load(a.path) }, Log: slog.New(slog.DiscardHandler),
		LimiterOptions: []engine.Option{engine.ClockFunc(env.Now)}, Clock: env.Now,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = a.server.Run(ctx)
	}()
	a.stop = func() {
		_ = a.conn.Close()
		cancel()
		<-ended
	}
	address, err := url.Parse(a.server.urlOf(redisClients))
	if err == nil {
		a.conn, err = net.Dial("tcp", address.Host)
	}
	if err != nil {
		env.T.Fatal(err)
	}
	a.answers = bufio.NewReader(a.conn)
	return a, nil
}

// write writes the rule file, and keeps the limits for the commands.
func (a *asking) write(c conformance.Config) (*rulefile.File, error) {
	for _, l := range c.Limits {
		switch {
		case len(c.Limits) > 1 && l.Path == "":
			return nil, fmt.Errorf("%w: several limits on a request", conformance.ErrUnsupported)
		case l.Key == conformance.Everyone || l.Concurrency > 0 || l.Shadow || l.MaxWait > 0 || l.Stored || l.Constant != 0 ||
			l.Algorithm != engine.NoAlgorithm && l.Algorithm != engine.AlgorithmTokenBucket:
			return nil, fmt.Errorf("%w: %+v", conformance.ErrUnsupported, l)
		}
		for _, t := range l.Tiers {
			if t.Constant != 0 {
				return nil, fmt.Errorf("%w: no command has such a limit", conformance.ErrUnsupported)
			}
		}
	}
	overflow := map[engine.OverflowPolicy]string{engine.Evict: "evict", engine.Refuse: "refuse"}[c.Limits[0].Overflow]
	text := fmt.Sprintf("redis: {address: 127.0.0.1:0, max_keys: %d, overflow: %s}\n", c.Limits[0].Room(), overflow)
	if c.Dir != "" {
		text += fmt.Sprintf("state: %q\n", c.Dir)
	}
	if err := errors.Join(os.WriteFile(a.path+"~", []byte(text), 0o600), os.Rename(a.path+"~", a.path)); err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.limits = c.Limits
	a.mu.Unlock()
	return rulefile.Load(a.path)
}

func (a *asking) Reload(c conformance.Config) error {
	if _, err := a.write(c); err != nil {
		return err
	}
	return a.server.Reload()
}

func (a *asking) Close() { a.stop() }

// limit returns the limit for a request, and the name of its key; "" if there is none.
func (a *asking) limit(q conformance.Request) (l conformance.Limit, key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l = range a.limits {
		switch {
		case l.Path != "" && l.Path != q.Path || l.Key == conformance.User && q.User == "":
		case l.Key == conformance.User:
			return l, l.Name + "/user/" + q.User
		default:
			return l, l.Name + "/client/" + q.Client
		}
	}
	return l, ""
}

// Send asks for the tokens of a request, serves it if they are there, and says what it has cost.
func (a *asking) Send(ctx context.Context, q conformance.Request) (answer conformance.Answer) {
	l, key := a.limit(q)
	cost, numbers := uint64(1), l.Numbers
	if i := l.Tier(q.Tier); i > 0 {
		numbers = l.Tiers[i-1].Numbers
	}
	if l.Quota && q.Quota != nil {
		if numbers = *q.Quota; numbers.Constant != 0 {
			return conformance.Answer{Err: fmt.Errorf("%w: no command has such a limit", conformance.ErrUnsupported)}
		}
	}
	if l.Cost {
		cost = q.Takes()
	}
	about := func(command string, cost uint64) []string {
		return []string{command, key, "LIMIT", fmt.Sprintf("%d/%dms", numbers.N, numbers.Per.Milliseconds()),
			"BURST", fmt.Sprint(numbers.Burst), "COST", fmt.Sprint(cost)}
	}
	if key != "" {
		got, err := a.command(about("WEIR.TAKE", cost))
		switch {
		case err != nil:
			return conformance.Answer{Failed: true}
		case got["allowed"] != "1":
			answer.Refused = []string{l.Name}
			if seconds, err := strconv.ParseFloat(got["retry_after"], 64); err == nil && seconds > 0 {
				answer.RetryAfter = time.Duration(seconds * float64(time.Second))
			}
			return answer
		}
	}
	_, answer.Err = a.env.Serve(ctx, q.ID)
	answer.Admitted = answer.Err == nil
	command, n := "WEIR.REFUND", uint64(0)
	switch {
	case answer.Err != nil || key == "":
	case l.Hold && q.Actual > cost:
		command, n = "WEIR.CHARGE", q.Actual-cost
	case l.Hold:
		n = cost - q.Actual
	case l.Refund == q.Ends:
		n = cost
	}
	if n > 0 {
		if _, err := a.command(about(command, n)); err != nil {
			answer.Err = err
		}
	}
	return answer
}

// command sends a command and returns the names and values of the answer.
func (a *asking) command(words []string) (map[string]string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := io.WriteString(a.conn, text); err != nil {
		return nil, err
	}
	n, err := a.element()
	if err != nil {
		return nil, err
	}
	elements, err := strconv.Atoi(n)
	values := make([]string, elements)
	for i := range values {
		if err == nil {
			values[i], err = a.element()
		}
	}
	got := map[string]string{}
	for i := 0; err == nil && i+1 < len(values); i += 2 {
		got[values[i]] = values[i+1]
	}
	return got, err
}

// element reads one element of an answer: of an array its length.
func (a *asking) element() (string, error) {
	line, err := a.answers.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, value := line[0], strings.TrimSpace(line[1:])
	switch kind {
	case '-':
		return "", errors.New(value)
	case '$':
		line, err = a.answers.ReadString('\n')
		return strings.TrimSpace(line), err
	}
	return value, nil
}
