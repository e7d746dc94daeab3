package redislimit

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The constant hashPart is the approximate number of hash fields that one call requests from the store. The store needs
// less than a millisecond to return that many fields. The constant hashTimeout is how long to wait for each answer.
const (
	hashPart    = 1000
	hashTimeout = 5 * time.Second
)

// Hash reads a hash that other programs write to the store. The parameter name is the full name of the hash. Hash calls
// the function yield with each field and its value. If yield returns an error, Hash stops and returns this error. If
// the name does not exist, it counts as a hash without fields. In addition to [Rights], the user needs +hscan and +hlen
// on the name.
//
// Hash requests about 1,000 fields at a time, so that the store can decide about other keys in between. A field that
// exists during the whole call is passed to yield at least once, even if the hash grows, shrinks, or is replaced by
// RENAME. Fields that are added or removed during the call may be missed. Hash uses one separate connection, so all
// fields come from the same server. If that connection is lost, or if the hash moves to another server of a cluster,
// Hash returns an error. Errors of the store match [ErrStore].
func (c *Client) Hash(ctx context.Context, name string, yield func(field, value string) error) error {
	redis := c.link.Load().redis
	if redis == nil {
		return fmt.Errorf("redislimit: Hash(%q): %w: it has not answered yet", name, ErrStore)
	}
	// All calls must go to the same server. Another server, such as the new master after a failover, has the fields in
	// another order. With the cursor of the first server, it would skip some fields and repeat others.
	server, release := redis.Dedicate()
	defer release()
	fail := func(err error) error { return fmt.Errorf("redislimit: Hash(%q): %w", name, errors.Join(ErrStore, err)) }
	length := func() (int64, error) {
		ctx, cancel := context.WithTimeout(ctx, hashTimeout)
		defer cancel()
		return server.Do(ctx, server.B().Hlen().Key(name).Build()).AsInt64()
	}
	part := func(cursor uint64) (next uint64, fields []string, err error) {
		ctx, cancel := context.WithTimeout(ctx, hashTimeout)
		defer cancel()
		entry, err := server.Do(ctx, server.B().Hscan().Key(name).Cursor(cursor).Count(hashPart).Build()).AsScanEntry()
		return entry.Cursor, entry.Elements, err
	}
	before, err := length()
	if err != nil {
		return fail(err)
	}
	found := int64(0)
	for cursor, begun := uint64(0), false; cursor != 0 || !begun; begun = true {
		next, fields, err := part(cursor)
		if err != nil {
			return fail(err)
		}
		for i := 0; i+1 < len(fields); i += 2 {
			if err := yield(fields[i], fields[i+1]); err != nil {
				return err
			}
			found++
		}
		cursor = next
	}
	after, err := length()
	if err != nil {
		return fail(err)
	}
	// A proxy may switch to another server behind the connection, so the number of fields is checked. Up to a hundredth
	// of the fields may be missing, because other programs may have removed fields meanwhile.
	if least := min(before, after); found < least-least/100 {
		return fail(fmt.Errorf("%d fields were read of %d", found, least))
	}
	return nil
}
