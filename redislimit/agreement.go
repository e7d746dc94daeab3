package redislimit

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weir-go/weir/redislimit/internal/script"
)

const (
	compareEvery = 20 * time.Second
	settingsLife = 3 * compareEvery
	mostTold     = 8 // other settings that are logged
)

// settings returns what all nodes of a limit must have in common for it to be one limit, in words.
func (c *clientConfig) settings() string {
	keys := "hashed"
	if c.fullKeys {
		keys = "full"
	}
	secret := "none"
	if c.secret != noSecret {
		secret = fmt.Sprintf("%x", sha256.Sum256(append([]byte("weir settings "), c.secret[:]...)))[:8]
	}
	return fmt.Sprintf("prefix=%s partitions=%d keys=%s secret=%s", c.prefix, c.partitions, keys, secret)
}

// terms returns what of a limit's options must be the same, too, in words; "" if there are none.
func terms(limit script.Terms) (text string) {
	if limit.MaxDebt > 0 {
		text += fmt.Sprintf(" maxdebt=%d", limit.MaxDebt)
	}
	if limit.MaxQuota > 0 {
		text += fmt.Sprintf(" maxquota=%d", limit.MaxQuota)
	}
	return text
}

// An agreement finds out whether other nodes have other settings than this one: each node leaves its own in the store,
// for a minute, under a name that depends on the limit's name alone, and reads those that were there.
type agreement struct {
	key, own string
	isBusy   atomic.Bool
	isOver   atomic.Bool     // the user may not use the key
	next     int64           // when to compare again; of the goroutine that keeps the limiter
	told     map[string]bool // what was logged, of the one goroutine that compares
	differs  atomic.Pointer[string]
}

func newAgreement(c *clientConfig, name string, limit script.Terms) *agreement {
	return &agreement{key: "weir:settings:" + name, own: c.settings() + terms(limit), told: map[string]bool{}}
}

// compare compares the settings, if it is time, without waiting for the answer.
func (l *Limiter) compare() {
	a, now := l.agreement, l.now()
	queue := &l.ways.Load().queues[0]
	if now < a.next || queue.breaker.IsOpen() || !a.isBusy.CompareAndSwap(false, true) {
		return
	}
	a.next = now + int64(compareEvery)
	go func() {
		defer a.isBusy.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), l.client.timeout)
		defer cancel()
		c := queue.redis
		if a.isOver.Load() {
			return
		}
		said, err := c.Do(ctx, c.B().Set().Key(a.key).Value(a.own).Get().Px(settingsLife).Build()).ToString()
		switch {
		case forbidden(err) != nil || isReply(err, "WRONGTYPE"):
			a.isOver.Store(true)
		case err != nil && !errors.Is(err, rueidis.Nil):
			// The next one may succeed.
		case said != "" && said != a.own:
			said = said[:min(len(said), 200)]
			a.differs.Store(&said)
			if !a.told[said] && len(a.told) < mostTold {
				a.told[said] = true
				l.client.tell(slog.LevelWarn, "a node with other settings holds a limit of this name, and so another one",
					slog.String("key", a.key), slog.String("here", a.own), slog.String("there", said))
			}
		}
	}()
}
