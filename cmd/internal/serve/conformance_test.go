package serve

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/internal/promisetest"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/conformance"
	"github.com/weir-go/weir/internal/conformance/overhttp"
	"github.com/weir-go/weir/limits/spec"
)

// TestConformance runs the cases of internal/conformance against a server on loopback. If requests wait in a case, the
// handler runs in a bubble of testing/synctest. The server runs outside of the bubble, because it has sockets.
func TestConformance(t *testing.T) {
	outside := make(chan func())
	done := make(chan struct{})
	go func() {
		for do := range outside {
			do()
			done <- struct{}{}
		}
	}()
	defer close(outside)
	conformance.Run(t, conformance.Front{
		Name: "weir serve",
		Promise: promisetest.Promise(time.Second, map[string]string{
			"Costs": "clients may write the cost, so it is 1 at least and the largest that the rule names at most",
		}),
		InBubble: func(k *conformance.Case) bool { return k.Waits },
		Start: func(env *conformance.Env, c conformance.Config) (conformance.Server, error) {
			s := &conforming{env: env, path: filepath.Join(env.T.TempDir(), "weir.yaml"), do: func(f func()) { f() }}
			if env.InBubble() {
				s.do = func(f func()) { outside <- f; <-done }
			}
			var err error
			s.do(func() { err = s.start(c) })
			return s, err
		},
	})
}

// completing sends each request as a call of a language model. Its max_tokens is the cost of the request.
type completing struct{ *http.Transport }

func (c completing) RoundTrip(r *http.Request) (*http.Response, error) {
	body := fmt.Sprintf(`{"max_tokens":%d}`, overhttp.Request(r).Takes())
	asks, err := http.NewRequestWithContext(r.Context(), r.Method, r.URL.JoinPath(chat).String(), strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	asks.Header = r.Header
	return c.Transport.RoundTrip(asks)
}

type conforming struct {
	*overhttp.Client
	*Server
	env   *conformance.Env
	path  string
	do    func(func()) // calls a function, outside of the bubble if there is one
	clock atomic.Int64
	stop  func()
	to    string // URL of the upstream
	held  []*generation
}

// The method now is the clock of the limits. In the bubble, it is the bubble's time. Outside of it, it is the last time
// that was read in the bubble.
func (s *conforming) now() time.Time {
	if !s.env.InBubble() {
		return s.env.Now()
	}
	if now := time.Now(); now.Year() < 2020 {
		s.clock.Store(now.UnixNano())
	}
	return time.Unix(0, s.clock.Load())
}

func (s *conforming) start(c conformance.Config) error {
	s.clock.Store(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()) // the time at which bubbles begin
	behind := httptest.NewServer(overhttp.Backend(s.env))
	s.to = behind.URL
	file, err := s.write(c)
	if err == nil {
		s.Server, err = Start(Config{
			File: file, Load: func() (*rulefile.File, error) { return rulefile.Load(s.path) }, Log: slog.New(slog.DiscardHandler),
			LimiterOptions: []engine.Option{engine.ClockFunc(s.now)}, Clock: s.now,
		})
	}
	if err != nil {
		behind.Close()
		return err
	}
	s.life.base.Done() // makes the channel here, because it must not belong to the bubble
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Run(ctx)
	}()
	s.Client = overhttp.NewClient(s.Server.URL(), nil)
	if slices.ContainsFunc(c.Limits, func(l conformance.Limit) bool { return l.Hold }) {
		s.Client.HTTP().Transport = completing{s.Client.HTTP().Transport.(*http.Transport)}
	}
	s.stop = func() {
		for _, g := range s.held {
			g.leave()
		}
		s.Client.Close()
		cancel()
		<-ended
		behind.Close()
	}
	return nil
}

func (s *conforming) write(c conformance.Config) (*rulefile.File, error) {
	text, err := ruleFile(c, s.to, filepath.Dir(s.path))
	if err != nil {
		return nil, err
	}
	if s.env.InBubble() {
		text = strings.Replace(text, "upstream: ", "x-upstream: ", 1) // uses the built-in echo, which has no sockets
	}
	if err := os.WriteFile(s.path+"~", []byte(text), 0o600); err != nil {
		return nil, err
	}
	if err := os.Rename(s.path+"~", s.path); err != nil {
		return nil, err
	}
	return rulefile.Load(s.path)
}

func (s *conforming) Reload(c conformance.Config) (err error) {
	s.do(func() {
		if s.env.InBubble() { // the last request of a generation closes it, which must happen outside of the bubble
			s.held = append(s.held, s.enter())
		}
		if _, err = s.write(c); err == nil {
			err = s.Server.Reload()
		}
	})
	return err
}

func (s *conforming) Send(ctx context.Context, q conformance.Request) conformance.Answer {
	if q.Quota != nil && q.Quota.Constant == conformance.Unlimited {
		return conformance.Answer{Err: fmt.Errorf("%w: RateLimit-Policy has no word for no limit", conformance.ErrUnsupported)}
	}
	if !s.env.InBubble() {
		return s.Client.Send(ctx, q)
	}
	w := httptest.NewRecorder()
	r := overhttp.Do(ctx, "http://127.0.0.1", q)
	r.RemoteAddr = "127.0.0.1:1"
	s.ServeHTTP(w, r)
	a := overhttp.Read(w.Code, w.Header(), w.Body.Bytes())
	a.Err = ctx.Err()
	return a
}

func (s *conforming) Close() { s.do(s.stop) }

func ruleFile(c conformance.Config, upstream, folder string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "listen: 127.0.0.1:0\nupstream: {url: %q}\ntrusted_proxies: [127.0.0.1]\n", upstream)
	if c.Store != nil {
		fmt.Fprintf(&b, "store: {url: \"redis://%s\", timeout: %v, nodes: %d, on_loss: %s}\nserver: {shutdown_timeout: 1s}\n",
			c.Store.Address(), c.Timeout(), c.Nodes, c.OnLoss)
	}
	if c.Dir != "" {
		fmt.Fprintf(&b, "state: %q\n", c.Dir)
	}
	if bits := c.Limits[0].IPv6Prefix; bits != 0 {
		fmt.Fprintf(&b, "client_ip: {ipv6_prefix: %d}\n", bits)
	}
	b.WriteString("rules:\n")
	for _, l := range c.Limits {
		if l.Users != nil {
			if err := l.WriteUsers(filepath.Join(folder, l.Name+".csv")); err != nil {
				return "", err
			}
		}
		fmt.Fprintf(&b, "  - name: %s\n%s", l.Name, numbers("    ", l.Algorithm, l.Numbers))
		line := func(is bool, format string, args ...any) {
			if is {
				fmt.Fprintf(&b, "    "+format+"\n", args...)
			}
		}
		line(!l.Spread, "max_keys: %d\n    overflow: %v", l.Room(),
			map[engine.OverflowPolicy]string{engine.Evict: "evict", engine.Refuse: "refuse"}[l.Overflow])
		line(l.Spread, "spread: true")
		line(l.Key == conformance.Everyone, "key: global")
		line(l.Concurrency > 0, "concurrency: %d", l.Concurrency)
		line(l.Path != "", "match: {path: %s}", l.Path)
		line(l.Key == conformance.User, "key: header:%s or none", overhttp.User)
		line(l.Hold, "tokens: {count: output}")
		line(l.Cost && !l.Hold, "cost: {header: %s, max: %d}", overhttp.Cost, cmp.Or(l.Burst, l.N, l.Concurrency))
		line(l.Refund == conformance.Good, "refund_status: 2xx")
		line(l.Refund == conformance.Bad, "refund_status: 5xx")
		line(l.MaxWait > 0, "max_wait: %v", l.MaxWait)
		line(l.Shadow, "shadow: true")
		line(c.Store != nil && !l.Stored, "store: false")
		line(l.Users != nil, "quota: {file: %s.csv}", l.Name)
		line(l.Quota, "quota: {header: %s, item: numbers}", overhttp.Policy)
		line(len(l.Tiers) > 0, "tiers:\n      header: %s\n      values:", overhttp.Tier)
		for _, t := range l.Tiers {
			line(true, "    %s:\n%s", t.Name, numbers("          ", engine.NoAlgorithm, t.Numbers))
		}
	}
	return b.String(), nil
}

func numbers(indent string, a engine.Algorithm, n conformance.Numbers) string {
	switch {
	case n.Constant == conformance.Unlimited:
		return indent + "rate: unlimited\n"
	case n.Constant == conformance.Blocked:
		return indent + "rate: 0\n"
	case n.N == 0:
		return ""
	}
	per := fmt.Sprintf("%dms", n.Per.Milliseconds())
	if n.Calendar != 0 {
		per = n.Calendar.String()
	}
	text := fmt.Sprintf("%srate: %d/%s\n", indent, n.N, per)
	if a != engine.NoAlgorithm {
		name := spec.Name(a)
		text += fmt.Sprintf("%salgorithm: %s\n", indent, name)
	}
	if n.Aligned {
		text += indent + "aligned: true\n"
	}
	if n.Zone != "" {
		text += fmt.Sprintf("%szone: %s\n", indent, n.Zone)
	}
	if n.Burst > 0 && (a == engine.NoAlgorithm || a == engine.AlgorithmTokenBucket || a == engine.AlgorithmBatchRefill) {
		text += fmt.Sprintf("%sburst: %d\n", indent, n.Burst)
	}
	return text
}
