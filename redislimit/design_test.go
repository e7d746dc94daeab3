package redislimit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
)

// Check and New give the same result for every limit, valid or not.
func TestCheckSaysWhatNewSays(t *testing.T) {
	_, client := mini(t)
	bucket := engine.TokenBucket(engine.PerSecond(1000), 200)
	type arguments struct {
		name    string
		policy  engine.Policy
		options []redislimit.Option
	}
	for want, a := range map[string]arguments{
		"":                            {"api", bucket, nil},
		"a name of 0 characters":      {"", bucket, nil},
		"the name \"a{b}\": want no":  {"a{b}", bucket, nil},
		"the name \"a\\nb\": want no": {"a\nb", bucket, nil},
		"the zero Policy":             {"api", engine.Policy{}, nil},
		"does not keep batches":       {"api", engine.BatchRefill(10, time.Second, 10), nil},
		"limit of 4097 tokens":        {"api", engine.SlidingLog(4097, time.Minute), nil},
		"Nodes(0)":                    {"api", bucket, []redislimit.Option{redislimit.Nodes(0)}},
		"option 1 of 1 is nil":        {"api", bucket, []redislimit.Option{nil}},
		"Overdraft(101): want at":     {"api", bucket, []redislimit.Option{redislimit.Overdraft(101)}},
		"LocalShare(0)":               {"api", bucket, []redislimit.Option{redislimit.LocalShare(0)}},
		"leases do not suit":          {"api", engine.SlidingWindow(5, time.Second), []redislimit.Option{redislimit.InMode(redislimit.Leased)}},
		"a node's share: engine: tok": {"api", engine.TokenBucket(engine.Per(0.0001, time.Hour), 1), []redislimit.Option{redislimit.Nodes(100_000)}},
	} {
		checked := redislimit.Check(a.name, a.policy, a.options...)
		l, err := redislimit.New(client, a.name, a.policy, a.options...)
		assert.Equal(t, err, checked)
		if want == "" {
			assert.NoError(t, err)
			assert.NoError(t, l.Close())
			continue
		}
		assert.ErrorContains(t, err, want)
	}
}
