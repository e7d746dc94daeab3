package redislimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// trials are policies whose keys live for at most a second.
var trials = []engine.Policy{
	engine.TokenBucket(engine.PerSecond(1e6), 1),
	engine.FixedWindow(1, time.Millisecond),
	engine.SlidingWindow(1, time.Millisecond),
	engine.SlidingLog(2, time.Second), // deleted at once
}

// tryScripts runs every script once, to find missing rights of the store's user at the start, and not when every call
// fails. It ignores temporary errors.
func (c *Client) tryScripts(ctx context.Context, redis rueidis.Client) error {
	for _, policy := range trials {
		limit, err := script.NewLimit(policy, script.Terms{})
		if err != nil {
			return err
		}
		n := newNamer(&c.clientConfig, limit.Kind(), "trial")
		ask, key := script.Ask{Need: 1, Want: 1}, n.probe(0) // twice: the second ask changes an existing key
		err = limit.Run(ctx, redis, []string{key, key}, []script.Ask{ask, ask}, make([]script.Answer, 2))
		if err := forbidden(err); err != nil {
			return fmt.Errorf("redislimit: the user may not run the script of a %v: want the rights %s: %w", policy.Algorithm(), Rights, err)
		}
		err = redis.Do(ctx, redis.B().Del().Key(key).Build()).Error()
		if err := forbidden(err); err != nil {
			return fmt.Errorf("redislimit: the user may not reset a key: want the rights %s: %w", Rights, err)
		}
	}
	return nil
}

// Rights are the minimal rights for the user of a store, in the syntax of ACL SETUSER, for keys with the prefix "weir".
// With another prefix, the user also needs ~weir:settings:*. The commands that the client library sends when it
// connects are not included. With +info, the client notices that the store drops keys ([Health]).
const Rights = "~weir:* +eval +evalsha +time +get +set +del +strlen +getrange +append +pexpire"

func forbidden(err error) error {
	var reply *rueidis.RedisError
	if errors.As(err, &reply) && isForbidden(reply.Error()) {
		return err
	}
	return nil
}
