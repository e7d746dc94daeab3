package script

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"
)

// An Item is what a group asks about one key of a limit. Its ask has either a Need or Returned tokens, and may have a
// Quota. Need equals Want unless All is true. Returned tokens go back to all windows that still count ([AnyWindow]).
type Item struct {
	Limit *Limit
	Key   string
	Ask   Ask
}

// Fits reports whether the Need of a key was available. If all keys of a group fit, all have taken their tokens.
func (a Answer) Fits() bool { return !a.Foreign && a.RetryAfter == 0 }

// RunTogether makes one call for several groups of keys. It stores the answers of one group after the other. All groups
// together have 1 to [MaxKeys] keys, in a cluster all of the same slot. A key may occur only once in a group.
//
// If the Need of every key of a group is available, the group takes tokens from each key and gives its Returned tokens
// back. Otherwise it does neither, but a key that refuses is charged if its limit charges refusals. Keys with a foreign
// value are ignored. The errors are those of [Limit.Run].
func RunTogether(ctx context.Context, c rueidis.Client, groups [][]Item, answers []Answer) error {
	keys, args, err := writeGroups(groups)
	if err != nil {
		return err
	}
	if len(keys) < 1 || len(keys) > MaxKeys || len(answers) != len(keys) {
		return fmt.Errorf("redislimit: a call of %d keys and %d answers: want 1 to %d of each", len(keys), len(answers), MaxKeys)
	}
	reply, err := call(ctx, c, together, keys, args, func(seconds int64) []string {
		for _, group := range groups {
			for _, item := range group {
				item.Limit.noteServerTime(seconds)
			}
		}
		_, args, _ := writeGroups(groups) // no error, because the groups were checked
		return args
	})
	if err != nil {
		return err
	}
	if len(reply) != 5*len(answers) {
		return fmt.Errorf("%w: %d numbers for %d keys", ErrReply, len(reply), len(answers))
	}
	i := 0
	for _, group := range groups {
		for _, item := range group {
			if err := item.Limit.read(reply[5*i:5*i+5], []Ask{item.Ask}, answers[i:i+1]); err != nil {
				return err
			}
			i++
		}
	}
	return nil
}

var together = rueidis.NewLuaScript(composeTogether())

func writeGroups(groups [][]Item) (keys, args []string, err error) {
	numbers := map[*Limit]string{} // numbers of the limits
	var questions []string
	for _, group := range groups {
		questions = append(questions, strconv.Itoa(len(group)))
		for i, item := range group {
			l, a := item.Limit, item.Ask
			for _, earlier := range group[:i] {
				if earlier.Key == item.Key {
					return nil, nil, fmt.Errorf("redislimit: the key %q is twice in one group", item.Key)
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
				arguments := l.appendArguments(nil)
				args = append(args, strconv.Itoa(int(l.number)), strconv.Itoa(len(arguments)))
				args = append(args, arguments...)
			}
			a = l.clamp(a)
			q := l.quota(a)
			keys = append(keys, item.Key)
			questions = append(questions, numbers[l], strconv.FormatUint(a.Need, 10), a.want())
			for _, n := range [...]uint64{a.Returned, q.Tokens, q.Units} {
				questions = append(questions, strconv.FormatUint(n, 10))
			}
		}
	}
	return keys, append(append([]string{strconv.Itoa(len(numbers))}, args...), questions...), nil
}
