package serve

import (
	"net/http"

	"github.com/weir-go/weir/cmd/internal/metering"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/rules"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits"
)

func (g *generation) limitOf(rule *rules.Rule) httplimit.Limit {
	l := rule.Limit()
	if m := g.meters.Of(rule.Name); m != nil {
		if l.Cost = m.Estimate; m.Clamps() {
			l.Least = m.Least
		}
	}
	if refund := l.Refund; refund != nil {
		l.Refund = func(r *http.Request, status int) bool { return exchangeOf(r).isRefundable() && refund(r, status) }
	}
	if rule.Store == nil {
		limiter := g.limiters[rule.Name]
		l.Limiter, l.Spread = limiter.Limiter, limiter.Spread
		if l.Spread != nil {
			l.Key = nil // the key is global
		}
		if rule.Counts() {
			l.Formers = limiter.Formers()
		}
		return l
	}
	// The limiter in the store applies on_loss by itself. It returns an error in two cases: on_loss is closed, or the
	// client has gone. In both cases the request must not reach the upstream.
	l.Source, l.OnLoss = g.stored[rule.Name].Value.Source(), limits.Closed
	return l
}

var styles = map[rulefile.Headers]httplimit.HeaderStyle{
	rulefile.HeadersIETF:    httplimit.IETF,
	rulefile.HeadersLegacy:  httplimit.Legacy,
	rulefile.HeadersDraft06: httplimit.Draft06,
	rulefile.HeadersBoth:    httplimit.IETF | httplimit.Legacy,
	rulefile.HeadersNone:    httplimit.NoHeaders,
}

func answerOptions(f *rulefile.File, meters *metering.Meters) ([]httplimit.Option, error) {
	options, err := refusals(f, meters)
	if err != nil {
		return nil, err
	}
	options = append(options, httplimit.Headers(styles[f.Headers]))
	if f.Response.Body == rulefile.BodyJSON {
		options = append(options, httplimit.Body(httplimit.PlainJSON))
	}
	if f.Response.RetryJitter > 0 {
		options = append(options, httplimit.RetryJitter(f.Response.RetryJitter, nil))
	}
	return options, nil
}
