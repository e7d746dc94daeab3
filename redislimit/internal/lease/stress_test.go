//go:build !explore

package lease

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/redislimit/internal/script"
)

// Concurrent calls admit exactly the granted tokens plus the debt (L1, L2).
func TestNothingIsSpentTwice(t *testing.T) {
	var current atomic.Pointer[Lease]
	current.Store(New(terms(), 0))
	var admitted, granted, charged, clock atomic.Uint64
	now := func() int64 { return int64(clock.Add(uint64(50 * time.Microsecond))) }
	stop := make(chan struct{})
	var wg sync.WaitGroup
	renewal := func(l *Lease, a script.Ask, i uint64) (paid uint64) {
		switch {
		case i%5 == 4: // the call is lost, or its answer
			l.Fail(now())
			granted.Add(-a.Returned) // these tokens are gone, so no request spends them
		case i%3 == 2:
			granted.Add(-a.Returned)
			charged.Add(a.Debt)
			l.Apply(script.Answer{RetryAfter: time.Millisecond}, now())
		default:
			granted.Add(a.Want - a.Returned)
			charged.Add(a.Debt)
			if l.Apply(script.Answer{Granted: a.Want, Remaining: 300}, now()) {
				return 1 + i%3
			}
		}
		return 0
	}
	for range 4 {
		wg.Go(func() {
			for i := uint64(0); i < 100_000; i++ {
				l := current.Load()
				v, renew := l.Take(1+i%3, now)
				if v == Admitted {
					admitted.Add(1 + i%3)
				}
				if renew {
					if v == Unknown {
						admitted.Add(renewal(l, l.Renewal(now(), 1+i%3, true), i))
					} else {
						renewal(l, l.Renewal(now(), 1+i%3, false), i)
					}
				}
			}
		})
	}
	var keeper sync.WaitGroup
	keeper.Go(func() {
		for i := uint64(0); ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			l := current.Load()
			settle, gone := l.Expire(now())
			if settle {
				renewal(l, l.Settlement(now()), i)
			}
			if gone {
				current.Store(New(terms(), 0))
			}
		}
	})
	wg.Wait()
	close(stop)
	keeper.Wait()
	tokens, debt := current.Load().Balance()
	assert.Equal(t, granted.Load()+charged.Load(), admitted.Load()+tokens-debt)
}
