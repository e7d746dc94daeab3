package redislimit

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/script"
)

const (
	compareEvery = 20 * time.Second
	settingsLife = 3 * compareEvery
	maxLogged    = 8 // how many different settings of other nodes are logged at most
)

// format is the version of the format in which the state of a key is stored.
const format = 2

func (c *clientConfig) settings() string {
	keys := "hashed"
	if c.fullKeys {
		keys = "full"
	}
	secret := "none"
	if c.secret != noSecret {
		secret = fmt.Sprintf("%x", sha256.Sum256(append([]byte("weir settings "), c.secret[:]...)))[:8]
	}
	return fmt.Sprintf("format=%d prefix=%s partitions=%d keys=%s secret=%s", format, c.prefix, c.partitions, keys, secret)
}

// numbers returns the numbers of a limit as text. Nodes with other numbers still share the counts.
func numbers(policy engine.Policy, limit script.Terms) string {
	text := fmt.Sprintf(" policy=(%v)", policy)
	if limit.MaxDebt > 0 {
		text += fmt.Sprintf(" maxdebt=%d", limit.MaxDebt)
	}
	if limit.Life > 0 {
		text += fmt.Sprintf(" placelife=%v", limit.Life)
	}
	if limit.MaxQuota > 0 {
		text += fmt.Sprintf(" maxquota=%d", limit.MaxQuota)
	}
	return text
}

// An agreement finds out whether other nodes have settings that differ from this node's.
type agreement struct {
	key, settings string
	baseSettings  string // the beginning of settings, without the numbers of the limit
	isBusy        atomic.Bool
	isOver        atomic.Bool     // the store refuses this key, so nothing is compared any more
	next          int64           // when to compare again; only for the background goroutine
	logged        map[string]bool // settings that were logged; only for the goroutine that compares
	lastSeen      int64           // when another node's settings were last seen; only for the goroutine that compares
	difference    atomic.Pointer[string]
}

func newAgreement(c *clientConfig, name string, designs []design) *agreement {
	baseSettings := c.settings() + " kind=" + designs[0].limit.Kind()
	settings := baseSettings
	for _, d := range designs {
		if !d.config.isShared {
			settings += numbers(d.policy, d.config.limit)
		}
	}
	return &agreement{key: "weir:settings:" + name, settings: settings, baseSettings: baseSettings, logged: map[string]bool{}}
}

func (l *Limiter) compare() {
	a, now := l.agreement, l.now()
	queue := &l.routes.Load().queues[0]
	if a == nil || now < a.next || queue.breaker.IsOpen() || !a.isBusy.CompareAndSwap(false, true) {
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
		reported, err := c.Do(ctx, c.B().Set().Key(a.key).Value(a.settings).Get().Px(settingsLife).Build()).ToString()
		switch {
		case forbidden(err) != nil || isReply(err, "WRONGTYPE"):
			a.isOver.Store(true)
		case err != nil && !errors.Is(err, rueidis.Nil):
		case reported != "" && reported != a.settings:
			reported = reported[:min(len(reported), 500)]
			a.lastSeen = now
			a.difference.Store(&reported)
			if !a.logged[reported] && len(a.logged) < maxLogged {
				a.logged[reported] = true
				text := "a node has a limit of this name with other settings, and does not share its counts"
				if strings.HasPrefix(reported, a.baseSettings+" ") {
					text = "a node has this limit with other numbers: the nodes share the counts, and each decides by its own numbers"
				}
				l.client.logAttrs(slog.LevelWarn, text,
					slog.String("key", a.key), slog.String("here", a.settings), slog.String("there", reported))
			}
		case now-a.lastSeen > int64(settingsLife):
			a.difference.Store(nil)
			clear(a.logged)
		}
	}()
}
