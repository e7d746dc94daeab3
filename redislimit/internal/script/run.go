package script

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/weir-go/weir/engine"
)

// MaxKeys is the number of keys that one call may carry.
const MaxKeys = 64

// ErrReply is returned for a reply that did not come from the scripts.
var ErrReply = errors.New("redislimit: not a reply of this limiter's script")

// An Ask is a request for one key.
type Ask struct {
	// The ask takes at least Need and at most Want tokens of the key. If Need are not available, it takes none. Need is
	// at most Want. If Want is 0, however, Need may be larger: no tokens are taken, and the answer says whether Need
	// are available.
	Need, Want uint64
	// All makes the ask take all available tokens up to Want, and not only a part of them ([Answer].Granted). Need may
	// then be more than Want. A refusal costs nothing, even if [Terms] charges refusals.
	All bool
	// Returned is how many tokens are given back first, but at most what the key owes.
	Returned uint64
	// Debt is how many tokens are charged next, whether they are available or not. [Terms] bounds what a key may owe. A
	// sliding log forgets a debt after a window.
	Debt uint64
	// Window is the Window of the Answer with which the Returned tokens were taken, or [AnyWindow]:
	//
	//   - A fixed window gets tokens back only while it lasts, and a sliding window while it is the current or the
	//     previous one.
	//   - A sliding log gives back only tokens that were taken at that time; with AnyWindow, it gives back the latest
	//     tokens.
	//   - A token bucket gives back at most the tokens that were owed at that time and have not come back since; with
	//     AnyWindow, it gives back all of Returned.
	//
	// For a bucket, the Answer has a Window only if the Ask has one.
	Window int64
	// Quota is the limit for this question. Returned and Debt are in tokens of this quota. The zero Quota stands for
	// the limit's own numbers.
	Quota Quota
}

// An Answer is the store's answer about one key.
type Answer struct {
	// Granted is how many tokens were taken: 0 if Need was not available, otherwise min(Want, max(Need, a quarter of
	// the available tokens)). For an ask with All, it is min(Want, the available tokens).
	Granted uint64
	// Remaining is how many whole tokens are left.
	Remaining uint64
	// RetryAfter is 0 if Need was available, and [engine.Never] if Need is above the limit. Otherwise it is the time,
	// exact to the microsecond, until Need is available if nothing else is taken.
	RetryAfter time.Duration
	// ResetAfter has the meaning of ResetAfter in [engine.Decision], rounded up to microseconds.
	ResetAfter time.Duration
	// Window identifies the state from which Granted was taken: see [Ask].
	Window int64
	// Foreign reports that the key has a value of another type. Nothing was done, and the other fields are 0.
	Foreign bool
}

// Run makes one call, which sends asks[i] for keys[i] and stores the answer in answers[i]. There are 1 to [MaxKeys]
// keys, in a cluster all of the same slot. A key may occur more than once.
//
// For each key, in order and at the server's time, Returned is given back, then Debt is charged, and then Need and Want
// are decided.
//
// After an error the answers are undefined. The server may or may not have carried out the call, but never for only
// some of the keys. If the arguments are wrong, it has not. For a reply that is not from the script, Run returns
// [ErrReply].
func (l *Limit) Run(ctx context.Context, c rueidis.Client, keys []string, asks []Ask, answers []Answer) error {
	if len(keys) < 1 || len(keys) > MaxKeys {
		return fmt.Errorf("redislimit: a call of %d keys: want 1 to %d", len(keys), MaxKeys)
	}
	if len(asks) != len(keys) || len(answers) != len(keys) {
		return fmt.Errorf("redislimit: a call of %d keys, %d asks and %d answers: want as many of each",
			len(keys), len(asks), len(answers))
	}
	for i, a := range asks {
		if err := l.check(a); err != nil {
			return fmt.Errorf("redislimit: ask %d: %w", i, err)
		}
	}
	reply, err := call(ctx, c, l.script, keys, l.write(asks), func(seconds int64) []string {
		l.noteServerTime(seconds)
		return l.write(asks)
	})
	if err != nil {
		return err
	}
	return l.read(reply, asks, answers)
}

// call sends a call to the server. For a calendar, it tries once more if the server's time is in none of the expected
// periods.
func call(
	ctx context.Context, c rueidis.Client, script *rueidis.Lua, keys, args []string, retryArgs func(seconds int64) []string,
) ([]int64, error) {
	reply, err := script.Exec(ctx, c, keys, args).AsIntSlice()
	if seconds, ok := timeOf(err); ok {
		reply, err = script.Exec(ctx, c, keys, retryArgs(seconds)).AsIntSlice()
	}
	if err != nil {
		return nil, badReply(err)
	}
	return reply, nil
}

// badReply returns an error that matches [ErrReply] if the answer is not a reply of the script.
func badReply(err error) error {
	if rueidis.IsParseErr(err) || rueidis.IsRedisNil(err) {
		return fmt.Errorf("%w: %w", ErrReply, err)
	}
	return err
}

// write returns the arguments for a script, as short as possible.
func (l *Limit) write(asks []Ask) []string {
	isLongForm := slices.ContainsFunc(asks, func(a Ask) bool { return a != Ask{Need: a.Need, Want: a.Need} })
	hasQuotas := slices.ContainsFunc(asks, func(a Ask) bool { return a.Quota != Quota{} })
	args := l.appendArguments(make([]string, 0, len(l.arguments)+calendarNumbers+7*len(asks)))
	for _, a := range asks {
		a = l.clamp(a)
		args = append(args, strconv.FormatUint(a.Need, 10))
		if isLongForm {
			args = append(args, a.want())
			for _, n := range [...]uint64{a.Returned, a.Debt, uint64(a.Window)} {
				args = append(args, strconv.FormatUint(n, 10))
			}
		}
		if hasQuotas {
			q := l.quota(a)
			args = append(args, strconv.FormatUint(q.Tokens, 10), strconv.FormatUint(q.Units, 10))
		}
	}
	return args
}

func (a *Ask) want() string {
	if a.All && a.Want > 0 {
		return "-" + strconv.FormatUint(a.Want, 10)
	}
	return strconv.FormatUint(a.Want, 10)
}

func (l *Limit) check(a Ask) error {
	if q := l.quota(a); q.Tokens > 0 && (q.Units < 1 || q.Tokens > l.widest/q.Units) {
		return fmt.Errorf("a quota of %d tokens of %d units: it is of another limit", q.Tokens, q.Units)
	} else if q.Tokens == 0 && (a != Ask{}) {
		return errors.New("no quota, and the limit is of quotas alone")
	}
	if a.Need > a.Want && a.Want > 0 && !a.All {
		return fmt.Errorf("need of %d tokens, want of %d: want at least what is needed", a.Need, a.Want)
	}
	if a.Window < 0 || a.Window > maxExact {
		return fmt.Errorf("window %d: want that of an Answer", a.Window)
	}
	return nil
}

// clamp returns an equivalent ask in numbers that Lua represents exactly.
func (l *Limit) clamp(a Ask) Ask {
	tokens := l.quota(a).Tokens
	maxDebt := l.terms.MaxDebt * tokens
	maxTokens := tokens + 1
	if l.terms.Refusals == engine.ChargePenalty {
		maxTokens = maxDebt + 1
	}
	a.Need, a.Want = min(a.Need, maxTokens), min(a.Want, maxTokens)
	a.Returned, a.Debt = min(a.Returned, maxDebt), min(a.Debt, maxDebt)
	return a
}

func (l *Limit) read(reply []int64, asks []Ask, answers []Answer) error {
	if len(reply) != 5*len(answers) {
		return fmt.Errorf("%w: %d numbers for %d keys", ErrReply, len(reply), len(answers))
	}
	for i := range answers {
		r := reply[5*i : 5*i+5]
		if r[0] == -1 {
			answers[i] = Answer{Foreign: true}
			continue
		}
		tokens := l.quota(asks[i]).Tokens
		if min(r[0], r[1], r[3], r[4]) < 0 || r[2] < -1 || uint64(r[0]) > tokens || uint64(r[1]) > tokens ||
			max(r[2], r[3]) > math.MaxInt64/int64(time.Microsecond) {
			return fmt.Errorf("%w: %d", ErrReply, r)
		}
		answers[i] = Answer{
			Granted: uint64(r[0]), Remaining: uint64(r[1]),
			RetryAfter: time.Duration(r[2]) * time.Microsecond, ResetAfter: time.Duration(r[3]) * time.Microsecond,
			Window: r[4],
		}
		if r[2] < 0 {
			answers[i].RetryAfter = engine.Never
		}
	}
	return nil
}
