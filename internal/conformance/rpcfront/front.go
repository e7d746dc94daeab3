// Package rpcfront makes the limits of package rpclimit for the cases of package conformance, and the server behind
// these limits. It works for any framework.
package rpcfront

import (
	"context"
	"encoding/json"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/conformance"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/rpclimit"
)

// The names of metadata that carry a request of a case.
const (
	ID           = "x-id"
	user         = "x-user"
	tier         = "x-tier"
	requestField = "x-request" // as JSON
	client       = "x-forwarded-for"
)

// Methods are the full names of all methods.
var Methods = func() (names []string) {
	for _, path := range []string{"/", "/a", "/b", "/c", "/busy", "/open", "/closed"} {
		names = append(names, Method(path))
	}
	return names
}()

// Method returns the full name of the method that a front uses for a path.
func Method(path string) string {
	if path == "/" {
		path = "/root"
	}
	return "/conformance.Front" + path
}

// Metadata returns the metadata of a request.
func Metadata(q conformance.Request) map[string]string {
	text, err := json.Marshal(q)
	if err != nil {
		panic(err)
	}
	m := map[string]string{ID: q.ID, requestField: string(text), client: q.Client}
	if q.User != "" {
		m[user] = q.User
	}
	if q.Tier != "" {
		m[tier] = q.Tier
	}
	return m
}

// Serve is the handler of all methods. It settles the estimated costs (holds) of limits with Hold, and returns the code
// of the answer.
func Serve(ctx context.Context, env *conformance.Env, id string, list []conformance.Limit) rpclimit.Code {
	q, err := env.Serve(ctx, id)
	for _, l := range list {
		if l.Hold {
			limits.HoldFrom(ctx, l.Name).Settle(q.Actual)
		}
	}
	switch {
	case ctx.Err() != nil:
		return rpclimit.Canceled
	case err != nil:
		return rpclimit.Unavailable
	case q.Ends == conformance.Broken:
		panic("broken")
	case q.Ends == conformance.Bad:
		return rpclimit.Internal
	}
	return rpclimit.OK
}

// Runs reports whether a front with a framework runs a case: every case without a store. The cases with a store run
// through [Direct].
func Runs(k *conformance.Case) bool { return !k.Stored }

// InBubble reports whether a case runs in simulated time. This is true for all cases that need no other process.
func InBubble(k *conformance.Case) bool { return !k.Stored && !k.Files }

// Limits makes the limits of a configuration. Every later call with the same limiters is a reload.
func Limits(limiters *conformance.Limiters, c conformance.Config) (*rpclimit.Limits, error) {
	list := make([]rpclimit.Limit, len(c.Limits))
	for i, l := range c.Limits {
		var err error
		if list[i], err = limit(limiters, c, l); err != nil {
			return nil, err
		}
	}
	set, err := rpclimit.New(list)
	if err != nil {
		return nil, err
	}
	return set, limiters.Commit()
}

func limit(limiters *conformance.Limiters, c conformance.Config, l conformance.Limit) (result rpclimit.Limit, err error) {
	if result, err = conformance.LimitOf[rpclimit.Call](limiters, c, l); err != nil {
		return result, err
	}
	switch {
	case l.Spread:
	case l.Key == conformance.Everyone:
		result.Key = limits.Everyone[rpclimit.Call]
	case l.Key == conformance.User:
		result.Key, err = rpclimit.MetadataValue(user, nil)
	default:
		var ip *httplimit.ClientIP
		if ip, err = httplimit.NewClientIP(httplimit.TrustProxies("127.0.0.1"), httplimit.TrustUnixSocket(), httplimit.IPv6Prefix(l.IPv6())); err != nil {
			return result, err
		}
		result.Key, err = rpclimit.ClientAddr(ip)
	}
	if err != nil {
		return result, err
	}
	if l.Path != "" {
		if result.Match, err = rpclimit.MatchMethods(Method(l.Path)); err != nil {
			return result, err
		}
	}
	if l.Cost {
		result.Cost = func(call rpclimit.Call) uint64 { return request(call).Takes() }
	}
	if len(l.Tiers) > 0 {
		result.Tier = func(call rpclimit.Call) int {
			name, _ := call.Value(tier)
			return l.Tier(name)
		}
	}
	if l.ByQuota() {
		result.Quota = func(call rpclimit.Call) (engine.Policy, error) { return l.Under(request(call)), nil }
	}
	switch l.Refund {
	case conformance.Good:
		result.Refund = rpclimit.RefundCodes(rpclimit.OK)
	case conformance.Bad:
		result.Refund = rpclimit.RefundCodes(rpclimit.Internal)
	}
	return result, nil
}

func request(call rpclimit.Call) (q conformance.Request) {
	text, _ := call.Value(requestField)
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		panic(err)
	}
	return q
}

// Code returns the answer for a code, without the details of the error.
func Code(code rpclimit.Code, err error) conformance.Answer {
	switch code {
	case rpclimit.OK, rpclimit.Internal:
		return conformance.Answer{Admitted: true}
	case rpclimit.ResourceExhausted:
		return conformance.Answer{}
	case rpclimit.Canceled, rpclimit.DeadlineExceeded:
		return conformance.Answer{Err: err}
	}
	return conformance.Answer{Failed: true}
}
