package redislimit

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// hashPart is about how many fields of a hash one call to the store asks for: the store takes less than a millisecond
// for them. hashTimeout is how long to wait for each answer.
const (
	hashPart    = 1000
	hashTimeout = 5 * time.Second
)

// Hash reads a hash of the store that others write, by its whole name, and calls yield with each field and its value.
// It ends with the error of yield. A name that is not there is a hash without fields. The user needs +hscan and +hlen
// on the name, beyond [Rights].
//
// The store is asked for about 1,000 fields at a time, so that it decides about other keys in between. yield gets each
// field that exists all the time once or more, even if the hash grows, shrinks, or is replaced by RENAME. Fields that
// are added or removed meanwhile may be missed. All fields are those of one server: Hash uses a connection of its own,
// and if that is lost, or the hash moves to another server of a cluster, that is an error. Errors of the store are
// [ErrStore].
func (c *Client) Hash(ctx context.Context, name string, yield func(field, value string) error) error {
	redis := c.link.Load().redis
	if redis == nil {
		return fmt.Errorf("redislimit: Hash(%q): %w: it has not answered yet", name, ErrStore)
	}
	// Another server, such as after a failover, has another order of the fields: the cursor would miss some and repeat
	// others.
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
	// A proxy may change servers behind the connection. Fields that others removed meanwhile may be missing, and the
	// bound leaves room for some.
	if least := min(before, after); found < least-least/100 {
		return fail(fmt.Errorf("%d fields were read of %d", found, least))
	}
	return nil
}
