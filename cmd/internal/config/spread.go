package config

import (
	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/limit"
	"github.com/weir-go/weir/engine"
)

// checkSpread refuses what a rule whose bucket is on all processors cannot have.
func (d *decoder) checkSpread(seen map[string]*yaml.Node, r *Rule) {
	at := seen["spread"]
	switch {
	case len(r.Key) != 1 || len(r.Key[0]) != 1 || r.Key[0][0].Kind != SourceGlobal:
		d.Fail(at, "spread: it is for one bucket, and the key is %s: write key: global, or leave spread out", r.Key)
		return
	case r.hasPolicy() && r.Policy.Algorithm() != engine.AlgorithmTokenBucket:
		d.Fail(at, "spread: only a token-bucket can be on all processors, and this is a %s: leave spread out",
			limit.Name(r.Policy.Algorithm()))
		return
	}
	for _, no := range []struct{ key, why string }{
		{"tiers", "one bucket has no tiers"},
		{"max_wait", "its tokens cannot be waited for"},
		{"refund_status", "what has come back by itself is not given back, which soon is all of it"},
		{"max_keys", "there is no table"},
		{"overflow", "there is no table"},
	} {
		if n := seen[no.key]; n != nil {
			d.Fail(n, "%s: the rule has spread: true, and %s: leave one of the two out", no.key, no.why)
		}
	}
	if !r.hasPolicy() {
		return
	}
	s, err := engine.NewSpread(r.Policy, engine.ClockPrecise())
	if err != nil {
		d.Fail(at, "spread: %s", plain(err))
		return
	}
	_ = s.Close() // always nil
}
