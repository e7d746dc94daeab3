package redislimit

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A store needs less than a millisecond to return hashPart fields. hashTimeout bounds the wait for each answer.
const (
	hashPart    = 1000
	hashTimeout = 5 * time.Second
)

// Hash reads a hash that other programs write to the store, and calls yield with each field and its value. The argument
// name is the full name of the hash. A missing hash counts as empty. If yield returns an error, Hash stops and returns
// the error. The user needs [Rights], and +hscan and +hlen on the name.
//
// Hash requests about 1,000 fields at a time, so that the store can decide about other keys in between. A field that
// exists during the whole call is passed to yield at least once. This holds even if the hash grows, shrinks, or is
// replaced by RENAME. Fields that are added or removed meanwhile may be missed.
//
// If the connection is lost, or if the hash moves to another server, Hash returns an error. Errors of the store match
// [ErrStore].
func (c *Client) Hash(ctx context.Context, name string, yield func(field, value string) error) error {
	redis := c.link.Load().redis
	if redis == nil {
		return fmt.Errorf("redislimit: Hash(%q): %w: it has not answered yet", name, ErrStore)
	}
	// All calls must go to one server. Another server, such as a new master, has the fields in another order, so the
	// cursor would skip some of them.
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
	for cursor, isStarted := uint64(0), false; cursor != 0 || !isStarted; isStarted = true {
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
	// Fields may be missing because a proxy has switched to another server. Up to one percent is accepted, because
	// other programs may have removed fields meanwhile.
	if minFields := min(before, after); found < minFields-minFields/100 {
		return fail(fmt.Errorf("%d fields were read of %d", found, minFields))
	}
	return nil
}
