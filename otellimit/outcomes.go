package otellimit

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/weir-go/weir/internal/stripe"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/otellimit/internal/instrument"
)

// counts contains, for each [limits.Outcome], the number of requests with that outcome.
type counts = [stripe.Kinds]uint64

func countOf(o limits.Outcome) func(counts) uint64 {
	return func(c counts) uint64 { return c[o] }
}

// outcomeKey is the attribute key for what a limit did to a request. The values of the attribute are the texts of
// [limits.Outcome].
const outcomeKey = attribute.Key("weir.limit.outcome")

func requests(o limits.Outcome) instrument.Reading[counts] {
	return instrument.Reading[counts]{
		Kind: instrument.Counter, Name: "weir.limit.requests", Unit: "{request}",
		Help:       "Requests that the limit decided about.",
		Attributes: []attribute.KeyValue{outcomeKey.String(o.String())}, Count: countOf(o),
	}
}

// outcomes are the metrics of one limit of a front. weir.limit.requests counts a request at most once for a limit. It
// also counts a request that is refunded later, or that a local limiter decides instead of the store. So refunds and
// failures of stores are separate metrics.
var outcomes = []instrument.Reading[counts]{
	requests(limits.Allowed), requests(limits.Refused), requests(limits.ShadowRefused),
	{
		Kind: instrument.Counter, Name: "weir.limit.refunds", Unit: "{request}",
		Help:  "Allowed requests whose cost was given back after the response.",
		Count: countOf(limits.Refunded),
	},
	{
		Kind: instrument.Counter, Name: "weir.limit.failures", Unit: "{request}",
		Help:  "Requests that the limit's backend failed to decide about, or to which its quota could not be applied.",
		Count: countOf(limits.Failed),
	},
}
