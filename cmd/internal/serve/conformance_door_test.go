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
	"slices"
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

// TestRedisDoorConformance runs the cases of internal/conformance against the listener for Redis clients. If the rule
// file can express a limit, commands name the limit. Otherwise they have its numbers.
func TestRedisDoorConformance(t *testing.T) {
	conformance.Run(t, conformance.Front{Name: "Redis door", Promise: promisetest.Promise(1, nil), Start: startDoor(true)})
}

// TestRedisDoorConformanceByNumbers runs the same cases as TestRedisDoorConformance. All commands have the numbers of
// limits.
func TestRedisDoorConformanceByNumbers(t *testing.T) {
	conformance.Run(t, conformance.Front{
		Name: "Redis door", Start: startDoor(false),
		Runs: func(c *conformance.Case) bool { // the cases left out need limits in a file, or are promises
			windows := []string{"one limit/fixed window", "one limit/sliding window", "one limit/sliding log", "one limit/batch refill", "one limit/calendar",
				"all or nothing/last refuses", "cost/window", "reload/algorithm", "reload/log", "reload/to a bucket", "reload/aligned", "reload/zone", "reload/mistake"}
			return !slices.Contains(windows, c.Name) && !strings.HasPrefix(c.Name, "promise/")
		},
	})
}

// asking is a program that limits its own requests. Before a request, it takes tokens from the Redis listener. After
// the request, it settles these tokens.
type asking struct {
	env    *conformance.Env
	named  bool // commands name limits in the rule file
	server *Server
	path   string
	stop   func()

	mu      sync.Mutex
	limits  []conformance.Limit
	conn    net.Conn
	answers *bufio.Reader
}

func startDoor(named bool) func(*conformance.Env, conformance.Config) (conformance.Server, error) {
	return func(env *conformance.Env, c conformance.Config) (conformance.Server, error) {
		return startAsking(env, c, named)
	}
}

func startAsking(env *conformance.Env, c conformance.Config, named bool) (conformance.Server, error) {
	a := &asking{env: env, named: named, path: filepath.Join(env.T.TempDir(), "door.yaml")}
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

func (a *asking) write(c conformance.Config) (*rulefile.File, error) {
	for _, l := range c.Limits {
		switch {
		case l.Key == conformance.Everyone || l.Shadow || l.MaxWait > 0 || l.Stored || l.Constant != 0 || l.Users != nil || l.IPv6Prefix != 0:
			return nil, fmt.Errorf("%w: %+v", conformance.ErrUnsupported, l)
		case !isBucket(&l) && (c.Dir != "" || !a.names(&l)):
			return nil, fmt.Errorf("%w: numbers in a command, and keys in a file, are of token buckets: %+v", conformance.ErrUnsupported, l)
		}
		for _, t := range l.Tiers {
			if t.Constant != 0 {
				return nil, fmt.Errorf("%w: no command has such a limit", conformance.ErrUnsupported)
			}
		}
	}
	overflow := map[engine.OverflowPolicy]string{engine.Evict: "evict", engine.Refuse: "refuse"}[c.Limits[0].Overflow]
	inFlight := ""
	if slices.ContainsFunc(c.Limits, func(l conformance.Limit) bool { return l.Concurrency > 0 }) {
		inFlight = ", in_flight: 12h"
		if c.Dir != "" {
			return nil, fmt.Errorf("%w: in_flight with state", conformance.ErrUnsupported)
		}
	}
	limits := ""
	for _, l := range c.Limits {
		if a.names(&l) {
			limits += nameOf(&l) + ": {" + strings.ReplaceAll(strings.TrimSpace(numbers("", l.Algorithm, l.Numbers)), "\n", ", ") + "}, "
		}
	}
	if limits != "" {
		limits = ", limits: {" + limits + "}"
	}
	text := fmt.Sprintf("redis: {address: 127.0.0.1:0, max_keys: %d, overflow: %s%s%s}\n", c.Limits[0].Room(), overflow, inFlight, limits)
	if c.Dir != "" {
		text += fmt.Sprintf("state: %q\n", c.Dir)
	}
	if err := errors.Join(os.WriteFile(a.path+"~", []byte(text), 0o600), os.Rename(a.path+"~", a.path)); err != nil {
		return nil, err
	}
	file, err := rulefile.Load(a.path)
	if err == nil { // after an error, the previous limits stay
		a.mu.Lock()
		defer a.mu.Unlock()
		a.limits = c.Limits
	}
	return file, err
}

func (a *asking) Reload(c conformance.Config) error {
	if _, err := a.write(c); err != nil {
		return err
	}
	return a.server.Reload()
}

func (a *asking) Close() { a.stop() }

// names reports whether commands name the limit l. They do so if the limit has the same numbers for all requests.
func (a *asking) names(l *conformance.Limit) bool {
	return a.named && l.Concurrency == 0 && len(l.Tiers) == 0 && !l.Quota
}

func isBucket(l *conformance.Limit) bool {
	return l.Algorithm == engine.NoAlgorithm || l.Algorithm == engine.AlgorithmTokenBucket || l.Concurrency > 0
}

// nameOf returns a limit's name in the rule file. The name begins with a letter.
func nameOf(l *conformance.Limit) string { return "limit-" + strings.ReplaceAll(l.Name, " ", "_") }

// A question asks about one limit of a request.
type question struct {
	conformance.Limit
	key  string
	cost uint64
	text []string // the arguments from LIMIT on
}

// questions returns what to ask about a request: places for limits on requests in flight, holds for limits with holds,
// and takes for all other limits.
func (a *asking) questions(q conformance.Request) (places, holds, takes []question, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.limits {
		one := question{Limit: l, key: l.Name + "/client/" + q.Client, cost: 1}
		if l.Key == conformance.User {
			one.key = l.Name + "/user/" + q.User
		}
		if l.Path != "" && l.Path != q.Path || l.Key == conformance.User && q.User == "" {
			continue
		}
		numbers := l.Numbers
		if i := l.Tier(q.Tier); i > 0 {
			numbers = l.Tiers[i-1].Numbers
		}
		if l.Quota && q.Quota != nil {
			if numbers = *q.Quota; numbers.Constant != 0 {
				return nil, nil, nil, fmt.Errorf("%w: no command has such a limit", conformance.ErrUnsupported)
			}
		}
		if l.Cost {
			one.cost = q.Takes()
		}
		one.text = []string{"LIMIT", fmt.Sprintf("%d/%dms", numbers.N, numbers.Per.Milliseconds()), "BURST", fmt.Sprint(numbers.Burst)}
		if a.names(&l) {
			one.text = []string{"LIMIT", nameOf(&l)}
		} else if l.Concurrency == 0 {
			one.key = nameOf(&l) + ":" + one.key // a named limit makes such keys
		}
		switch {
		case l.Concurrency > 0:
			one.text = []string{"LIMIT", fmt.Sprint(l.Concurrency), "COST", fmt.Sprint(one.cost)}
			places = append(places, one)
		case l.Hold:
			holds = append(holds, one)
		default:
			takes = append(takes, one)
		}
	}
	return places, holds, takes, nil
}

// The method all sends one command that takes from all keys or from no key. It returns the id of the command, and the
// limits that have refused.
func (a *asking) all(name string, questions []question) (id string, answer conformance.Answer) {
	words := []string{name, fmt.Sprint(len(questions))}
	for _, one := range questions {
		words = append(words, one.key)
	}
	for _, one := range questions {
		words = append(append(words, one.text...), "COST", fmt.Sprint(one.cost))
	}
	got, err := a.command(words...)
	if err != nil {
		return "", conformance.Answer{Failed: true}
	}
	id, _ = got["id"].(string)
	if got["allowed"] == "1" {
		return id, conformance.Answer{}
	}
	for i, limit := range got["limits"].([]any) {
		if said := byName(limit.([]any)); said["allowed"] != "1" {
			answer.Refused = append(answer.Refused, questions[i].Name)
			if seconds, err := strconv.ParseFloat(said["retry_after"].(string), 64); err == nil {
				answer.RetryAfter = max(answer.RetryAfter, time.Duration(seconds*float64(time.Second)))
			}
		}
	}
	return "", answer
}

// Send serves a request if its tokens are available. Afterwards it reports what the request has cost.
func (a *asking) Send(ctx context.Context, q conformance.Request) (answer conformance.Answer) {
	places, holds, takes, err := a.questions(q)
	if err != nil {
		return conformance.Answer{Err: err}
	}
	for _, one := range places {
		got, err := a.command(append([]string{"WEIR.ENTER", one.key}, one.text...)...)
		switch {
		case err != nil:
			return conformance.Answer{Failed: true}
		case got["allowed"] != "1":
			return conformance.Answer{Refused: []string{one.Name}}
		}
		defer func() {
			_, err := a.command("WEIR.RELEASE", got["id"].(string))
			answer.Err = errors.Join(answer.Err, err)
		}()
	}
	id := ""
	if len(holds) > 0 {
		if id, answer = a.all("WEIR.HOLDALL", holds); answer.Failed || answer.Refused != nil {
			return answer
		}
	}
	settle := func(cost uint64) (err error) {
		if id != "" {
			_, err = a.command("WEIR.SETTLE", id, fmt.Sprint(cost))
		}
		return err
	}
	if len(takes) > 0 {
		if _, answer = a.all("WEIR.TAKEALL", takes); answer.Failed || answer.Refused != nil {
			answer.Err = settle(0)
			return answer
		}
	}
	_, answer.Err = a.env.Serve(ctx, q.ID)
	answer.Admitted = answer.Err == nil
	answer.Err = errors.Join(answer.Err, settle(q.Actual))
	for _, one := range takes {
		if answer.Admitted && one.Refund == q.Ends && one.cost > 0 {
			_, err := a.command(append(append([]string{"WEIR.REFUND", one.key}, one.text...), "COST", fmt.Sprint(one.cost))...)
			answer.Err = errors.Join(answer.Err, err)
		}
	}
	return answer
}

func (a *asking) command(words ...string) (map[string]any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := io.WriteString(a.conn, text); err != nil {
		return nil, err
	}
	got, err := a.element()
	if err != nil {
		return nil, err
	}
	list, _ := got.([]any)
	return byName(list), nil
}

func byName(list []any) map[string]any {
	got := map[string]any{}
	for i := 0; i+1 < len(list); i += 2 {
		got[list[i].(string)] = list[i+1]
	}
	return got
}

func (a *asking) element() (any, error) {
	line, err := a.answers.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, value := line[0], strings.TrimSpace(line[1:])
	switch kind {
	case '-':
		return nil, errors.New(value)
	case '$':
		if value == "-1" {
			return nil, nil
		}
		line, err = a.answers.ReadString('\n')
		return strings.TrimSpace(line), err
	case '*':
		n, err := strconv.Atoi(value)
		list := make([]any, n)
		for i := range list {
			if err == nil {
				list[i], err = a.element()
			}
		}
		return list, err
	}
	return value, nil
}
