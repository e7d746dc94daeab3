package caddylimit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/weir-go/weir/caddylimit"
	"github.com/weir-go/weir/caddylimit/internal/testcaddy"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/conformance"
	"github.com/weir-go/weir/internal/conformance/overhttp"
	"github.com/weir-go/weir/limits/spec"
)

// TestConformance runs each conformance case as a configuration of a real Caddy, one after the other.
func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Front{
		Name:     "caddylimit",
		Promise:  promise(time.Second, nil),
		InBubble: func(k *conformance.Case) bool { return !k.Stored && !k.Files },
		Start: func(env *conformance.Env, c conformance.Config) (conformance.Server, error) {
			s := &conforming{env: env}
			if err := s.Reload(c); err != nil {
				return nil, err
			}
			s.Client = overhttp.Serve(env, s)
			return s, nil
		},
	})
}

type conforming struct {
	*overhttp.Client
	env     *conformance.Env
	current atomic.Pointer[testcaddy.Config]
}

// Reload starts a configuration and stops the previous one, as Caddy does.
func (s *conforming) Reload(c conformance.Config) error {
	h, err := handler(s.env, c)
	if err != nil {
		return err
	}
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	next, err := testcaddy.Provision(s.env.T, "weir", string(text))
	if err != nil {
		return err
	}
	next.Start(s.env.T)
	if before := s.current.Swap(next); before != nil {
		before.Stop(s.env.T)
	}
	return nil
}

func (s *conforming) Close() {
	s.Client.Close()
	s.current.Load().Stop(s.env.T)
}

// ServeHTTP does the work of Caddy's server: the client's address is the one that a trusted proxy reports.
func (s *conforming) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.RemoteAddr = net.JoinHostPort(overhttp.Request(r).Client, "1")
	behind := overhttp.Backend(s.env)
	err := s.current.Load().Handlers[0].ServeHTTP(w, testcaddy.Prepare(r, w),
		caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
			behind.ServeHTTP(w, r)
			return nil
		}))
	var failed caddyhttp.HandlerError
	switch {
	case errors.As(err, &failed):
		w.WriteHeader(failed.StatusCode)
	case err != nil:
		w.WriteHeader(http.StatusInternalServerError)
	}
}

func handler(env *conformance.Env, c conformance.Config) (*caddylimit.Handler, error) {
	h := &caddylimit.Handler{State: c.Dir}
	for _, l := range c.Limits {
		if l.Spread {
			return nil, fmt.Errorf("%w: %+v", conformance.ErrUnsupported, l)
		}
		made := caddylimit.Limit{Name: l.Name, Shadow: l.Shadow, MaxKeys: l.Room(), Concurrency: l.Concurrency,
			MaxWait: caddy.Duration(l.MaxWait), IPv6Prefix: l.IPv6Prefix, Aligned: l.Aligned, Zone: l.Zone, Local: c.Store != nil && !l.Stored}
		switch l.Refund {
		case conformance.Good:
			made.RefundStatus = []string{"2xx"}
		case conformance.Bad:
			made.RefundStatus = []string{"500-599"}
		}
		if len(l.Tiers) > 0 {
			made.Tiers = &caddylimit.Tiers{By: "{http.request.header." + overhttp.Tier + "}", Values: map[string]caddylimit.Numbers{}}
			for _, t := range l.Tiers {
				made.Tiers.Values[t.Name] = rateOf(l, t.Numbers)
			}
		}
		if l.Overflow == engine.Refuse {
			made.Overflow = "refuse"
		}
		matches := ""
		if l.Path != "" {
			matches = fmt.Sprintf(`"path":[%q]`, l.Path)
		}
		if l.Key == conformance.User {
			made.Key = []string{"{http.request.header." + overhttp.User + "}"}
			if matches != "" {
				matches += ","
			}
			matches += fmt.Sprintf(`"header":{%q:["*"]}`, overhttp.User)
		}
		if matches != "" {
			if err := json.Unmarshal([]byte("[{"+matches+"}]"), &made.Match); err != nil {
				return nil, err
			}
		}
		if l.Cost {
			made.Cost = "{http.request.header." + overhttp.Cost + "}"
		}
		if l.Hold {
			made.Settle = "{http.response.header." + overhttp.Actual + "}"
		}
		if l.Quota {
			made.Quota = "{http.request.header." + overhttp.Quota + "}"
		}
		if l.Users != nil {
			made.Quotas = &caddylimit.Quotas{File: filepath.Join(env.T.TempDir(), "users.csv")}
			if err := l.WriteUsers(made.Quotas.File); err != nil {
				return nil, err
			}
		}
		numbers(&made, l)
		h.Limits = append(h.Limits, made)
	}
	if c.Store != nil {
		h.Store, h.OnLoss, h.Nodes, h.Timeout = "redis://"+c.Store.Address(), string(c.OnLoss), c.Nodes, caddy.Duration(c.Timeout())
	}
	return h, nil
}

func numbers(made *caddylimit.Limit, l conformance.Limit) {
	switch {
	case l.Concurrency > 0:
		return
	}
	own := rateOf(l, l.Numbers)
	if made.Rate, made.Burst = own.Rate, own.Burst; l.Constant != 0 {
		return
	}
	if l.Algorithm != engine.NoAlgorithm {
		made.Algorithm = spec.Name(l.Algorithm)
	}
}

func rateOf(l conformance.Limit, n conformance.Numbers) caddylimit.Numbers {
	switch n.Constant {
	case conformance.Blocked:
		return caddylimit.Numbers{Rate: "0"}
	case conformance.Unlimited:
		return caddylimit.Numbers{Rate: "unlimited"}
	}
	made := caddylimit.Numbers{Rate: fmt.Sprintf("%d/%dms", n.N, n.Per.Milliseconds())}
	if n.Calendar != 0 {
		made.Rate = fmt.Sprintf("%d/%v", n.N, n.Calendar)
	}
	switch l.Algorithm {
	case engine.NoAlgorithm, engine.AlgorithmTokenBucket, engine.AlgorithmBatchRefill:
		made.Burst = n.Burst
	}
	return made
}
