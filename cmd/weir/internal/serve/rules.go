package serve

import (
	"net/http"
	"strconv"

	"github.com/weir-go/weir/cmd/weir/internal/config"
	"github.com/weir-go/weir/httplimit"
)

// limitOf returns the limit of a rule.
func (g *generation) limitOf(rule *config.Rule) (httplimit.Limit, error) {
	key, err := keyFunc(rule.Key, g.ip)
	if err != nil {
		return httplimit.Limit{}, err
	}
	l := httplimit.Limit{
		Name:   rule.Name,
		Match:  rule.Match.Matches,
		Key:    key,
		Cost:   cost(rule.Cost),
		Tier:   tier(rule.Tiers),
		Refund: refund(rule.Refund),
		Shadow: rule.Shadow,
	}
	if rule.Store == nil {
		l.Limiter = g.limiters[rule.Name].value
		return l, nil
	}
	// What a lost store means its limiter knows. An error is that of a rule that is closed then, or of a client
	// who has gone: neither is to come to the upstream.
	l.Backend, l.Window, l.OnError = g.stored[rule.Name].value, rule.Policy.Window(), httplimit.FailClosed
	return l, nil
}

func cost(c config.Cost) func(*http.Request) uint64 {
	if c.Header == "" {
		return func(*http.Request) uint64 { return c.Default }
	}
	return func(r *http.Request) uint64 {
		n, err := strconv.ParseUint(r.Header.Get(c.Header), 10, 64)
		if err != nil || n == 0 {
			return c.Default
		}
		return min(n, c.Max)
	}
}

func tier(t *config.Tiers) func(*http.Request) int {
	if t == nil {
		return nil
	}
	return func(r *http.Request) int { return t.Of(r.Header.Get(t.Header)) }
}

func refund(s config.Statuses) func(*http.Request, int) bool {
	if len(s) == 0 {
		return nil
	}
	return func(_ *http.Request, status int) bool { return s.Contains(status) }
}

// styles are the header styles of a rule file.
var styles = map[config.Headers]httplimit.HeaderStyle{
	config.HeadersIETF:    httplimit.IETF,
	config.HeadersLegacy:  httplimit.Legacy,
	config.HeadersDraft06: httplimit.Draft06,
	config.HeadersBoth:    httplimit.IETF | httplimit.Legacy,
	config.HeadersNone:    httplimit.NoHeaders,
}

// answerOptions say how answers look.
func answerOptions(f *config.File) []httplimit.Option {
	options := []httplimit.Option{httplimit.Headers(styles[f.Headers])}
	if f.Response.Body == config.BodyJSON {
		options = append(options, httplimit.Body(httplimit.PlainJSON))
	}
	if f.Response.RetryJitter > 0 {
		options = append(options, httplimit.RetryJitter(f.Response.RetryJitter, nil))
	}
	return options
}
