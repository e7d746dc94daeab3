package redislimit

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/weir-go/weir/redislimit/internal/breaker"
)

const openTime = 5 * time.Second

// JoinLater lets [Open] succeed while the store does not answer. The store then counts as lost ([OnLoss]), and the
// client tries to connect four times per second. If the store does not accept a certificate, a password or the rights,
// Open still returns an error. If the store rejects one of them only later, [Health] reports the error. A node that
// restarts during a loss has a full share again, unless its limiters have [DebtFiles].
func JoinLater() ClientOption {
	return func(c *clientConfig) error {
		c.joinLater = true
		return nil
	}
}

// A link is the connection of a client to its store. A client that starts while its store is lost does not know the
// number of the store's parts, so it replaces the link at the first answer.
type link struct {
	redis       rueidis.Client    // nil before the store has answered
	breakers    []breaker.Breaker // one for each part
	groupQueues []queue           // queues for groups, one for each part
}

func (c *Client) newLink(redis rueidis.Client) *link {
	// Keys of different parts of a cluster cannot share a call, and each part can fail independently.
	parts := 1
	if redis.Mode() == rueidis.ClientModeCluster {
		parts = c.partitions
	}
	l := &link{redis, make([]breaker.Breaker, parts), make([]queue, parts)}
	for i := range l.groupQueues {
		l.groupQueues[i] = queue{client: c, redis: redis, breaker: &l.breakers[i], now: now}
	}
	return l
}

// connect connects to the store and checks what its user may do.
func (c *Client) connect(ctx context.Context, o rueidis.ClientOption) error {
	type result struct {
		redis rueidis.Client
		err   error
	}
	done := make(chan result, 1)
	go func() {
		redis, err := rueidis.NewClient(o)
		done <- result{redis, err}
	}()
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	select {
	case r := <-done:
		if r.err != nil {
			return newNoAnswer(o, c.dialer.explain(r.err))
		}
		if err := c.tryScripts(ctx, r.redis); err != nil {
			r.redis.Close()
			return err
		}
		c.link.Store(c.newLink(r.redis))
		return nil
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				r.redis.Close()
			}
		}()
		return newNoAnswer(o, c.dialer.explain(ctx.Err()))
	}
}

// mayPass reports whether the error may disappear without an operator. An error about the user, a command or a
// certificate does not.
func isTemporary(err error) bool {
	switch kindOf(err) {
	case "certificate", "forbidden", "wrongpass", "error":
		return false
	}
	return errors.Is(err, ErrStore)
}

func (c *Client) startLost(o rueidis.ClientOption, cause error) {
	lostLink := &link{breakers: make([]breaker.Breaker, 1)}
	at := now()
	c.noteFailure(cause, lostLink.breakers[0].Failed(at, at, 0), at)
	c.link.Store(lostLink)
	ctx, giveUp := context.WithCancel(context.Background())
	c.cancelJoining = giveUp
	c.joining.Go(func() {
		ticker := time.NewTicker(breaker.ProbeEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			err := c.connect(ctx, o)
			if err == nil {
				c.noteReturn()
				return
			}
			c.noteFailure(err, false, now())
		}
	})
}
