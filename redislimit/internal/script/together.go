package script

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"
)

// An Item is what a group asks of one key of a limit. Its ask has a Need, which is also what is wanted unless it is for
// All, or tokens Returned, which go back to whatever windows still count, and maybe a Quota.
type Item struct {
	Limit *Limit
	Key   string
	Ask   Ask
}

// Fits reports whether what was needed of a key of a group is there. If all of a group fit, all have taken.
func (a Answer) Fits() bool { return !a.Foreign && a.RetryAfter == 0 }

// RunTogether asks for groups of keys in one call, and writes the answers to answers, those of one group after those of
// another. If all keys of a group fit, each takes what it needs, and what was Returned is given back; otherwise none
// does, but that a key which refuses is charged for it where its limit says so. Foreign keys have no say. There are 1
// to [MaxKeys] keys in all, each in a group once; in a cluster they have to be of one slot.
//
// Errors are those of [Limit.Run].
func RunTogether(ctx context.Context, c rueidis.Client, groups [][]Item, answers []Answer) error {
	keys, args, err := writeGroups(groups)
	if err != nil {
		return err
	}
	if len(keys) < 1 || len(keys) > MaxKeys || len(answers) != len(keys) {
		return fmt.Errorf("redislimit: a call of %d keys and %d answers: want 1 to %d of each", len(keys), len(answers), MaxKeys)
	}
	reply, err := call(ctx, c, together, keys, args, func(time int64) []string {
		for _, group := range groups {
			for _, one := range group {
				one.Limit.learn(time)
			}
		}
		_, args, _ := writeGroups(groups) // which were checked
		return args
	})
	if err != nil {
		return err
	}
	if len(reply) != 5*len(answers) {
		return fmt.Errorf("%w: %d numbers for %d keys", ErrReply, len(reply), len(answers))
	}
	at := 0
	for _, group := range groups {
		for _, one := range group {
			if err := one.Limit.read(reply[5*at:5*at+5], []Ask{one.Ask}, answers[at:at+1]); err != nil {
				return err
			}
			at++
		}
	}
	return nil
}

var together = rueidis.NewLuaScript(composeTogether())

// writeGroups writes what the script is told.
func writeGroups(groups [][]Item) (keys, args []string, err error) {
	numbers := map[*Limit]string{} // of the limits
	var asked []string
	for _, group := range groups {
		asked = append(asked, strconv.Itoa(len(group)))
		for i, one := range group {
			l, a := one.Limit, one.Ask
			for _, before := range group[:i] {
				if before.Key == one.Key {
					return nil, nil, fmt.Errorf("redislimit: the key %q is twice in one group", one.Key)
				}
			}
			if a.Debt != 0 || a.Need != a.Want && !a.All || a.Need > 0 && a.Returned > 0 {
				err = errors.New("want a need or what is returned, and nothing else")
			} else {
				err = l.check(a)
			}
			if err != nil {
				return nil, nil, fmt.Errorf("redislimit: ask %d: %w", i, err)
			}
			if numbers[l] == "" {
				numbers[l] = strconv.Itoa(len(numbers) + 1)
				told := l.tell(nil)
				args = append(args, strconv.Itoa(int(l.number)), strconv.Itoa(len(told)))
				args = append(args, told...)
			}
			a = l.bounded(a)
			q := l.quota(a)
			keys = append(keys, one.Key)
			asked = append(asked, numbers[l], strconv.FormatUint(a.Need, 10), a.want())
			for _, n := range [...]uint64{a.Returned, q.Tokens, q.Units} {
				asked = append(asked, strconv.FormatUint(n, 10))
			}
		}
	}
	return keys, append(append([]string{strconv.Itoa(len(numbers))}, args...), asked...), nil
}
