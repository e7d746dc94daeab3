package engine

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkVerbs times the verbs by turns, so that other load affects all of them in the same way. Run many rounds:
//
//	go test -run '^$' -bench Verbs -benchtime 20000x ./engine
func BenchmarkVerbs(b *testing.B) {
	for _, policy := range []Policy{TokenBucket(PerSecond(1e9), 1<<30), FixedWindow(1<<30, time.Hour), Concurrency(1<<16-1, time.Hour)} {
		b.Run(policy.String(), func(b *testing.B) { compare(b, policy) })
	}
}

// A timed verb is called for each key. The function before prepares each call, and is not timed.
type timed struct {
	name   string
	before func(i int)
	call   func(i int)
	least  time.Duration
}

func compare(b *testing.B, policy Policy) {
	l, err := New(policy, MaxKeys(1000))
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	var keys [64]Key
	var holds [len(keys)]Receipt
	var entries [len(keys)]Receipt
	var texts [len(keys)]string
	for i := range keys {
		texts[i] = fmt.Sprintf("tenant-%d/user-%d", i%17, i)
		keys[i] = l.Key(texts[i])
	}
	quota, err := l.Quota(policy)
	if err != nil {
		b.Fatal(err)
	}
	hold := func(i int) { _, holds[i] = l.Hold(keys[i], 2) }
	underQuota := func(i int) { l.TakeKey(keys[i].With(quota), 1) }
	verbs := []timed{
		{name: "take", call: func(i int) { l.TakeKey(keys[i], 1) }},
		{name: "allow", call: func(i int) { l.AllowKey(keys[i]) }},
		{name: "text-take", call: func(i int) { l.Take(texts[i], 1) }},
		{name: "text-quota", before: underQuota, call: func(i int) { l.TakeKey(l.Key(texts[i]).With(quota), 1) }},
		{name: "quota", before: underQuota, call: underQuota},
		{name: "other-quota", call: underQuota},
		{name: "hold-quota", before: underQuota, call: func(i int) { _, holds[i] = l.Hold(keys[i].With(quota), 2) }},
		{name: "charge", call: func(i int) { l.Charge(keys[i], 1) }},
		{name: "receipt", call: func(i int) { l.TakeReceipt(keys[i], 1) }},
		{name: "hold", call: hold},
		{name: "settle", before: hold, call: func(i int) { holds[i].Settle(1) }},
		{name: "settle-late", before: func(i int) { hold(i); l.TakeKey(keys[i], 1) }, call: func(i int) { holds[i].Settle(1) }},
		{name: "settle-more", before: hold, call: func(i int) { holds[i].Settle(3) }},
		{name: "enter", call: func(i int) { _, entries[i] = l.TakeReceipt(keys[i], 1) }},
		{name: "release", before: func(i int) { _, entries[i] = l.TakeReceipt(keys[i], 1) }, call: func(i int) { entries[i].Release() }},
	}
	for i := range verbs {
		verbs[i].least = time.Hour
	}
	for range b.N {
		for v := range verbs {
			for i := range keys {
				if verbs[v].before != nil {
					verbs[v].before(i)
				}
			}
			begin := time.Now()
			for i := range keys {
				verbs[v].call(i)
			}
			verbs[v].least = min(verbs[v].least, time.Since(begin))
			for i := range keys {
				l.Reset(keys[i])
				l.TakeKey(keys[i], 1)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	at := map[string]time.Duration{}
	for _, v := range verbs {
		at[v.name] = v.least
		b.ReportMetric(float64(v.least)/float64(len(keys)), v.name+"-ns")
		b.ReportMetric(float64(v.least)/float64(verbs[0].least), v.name+"/take")
	}
	b.ReportMetric(float64(at["take"])/float64(at["allow"]), "take/allow")
	b.ReportMetric(float64(at["hold"]+at["settle"])/float64(at["allow"]), "hold+settle/allow")
}
