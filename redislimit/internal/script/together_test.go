package script

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

type member struct {
	limit  *Limit
	quotas []Quota
	keys   [2]Model
}

func expect(now int64, group []Item, models []*Model) (answers []Answer, admitted bool) {
	admitted = true
	for i, one := range group {
		look := one.Ask
		look.Want, look.Returned = 0, 0
		answers = append(answers, models[i].Ask(one.Limit, now, look))
		admitted = admitted && answers[i].Fits()
	}
	for i, one := range group {
		if admitted || !answers[i].Fits() { // as without a group: a refusal may convert the state, or cost tokens
			answers[i] = models[i].Ask(one.Limit, now, one.Ask)
		}
	}
	return answers, admitted
}

// For random groups, the script decides as the models of the keys do.
func TestGroupsAreTheModels(t *testing.T) {
	groupsAreTheModels(t, append([]form{{policy: engine.Concurrency(10, time.Second)}}, forms...), false)
}

// The script decides groups with the calendar, and requests for all available tokens, as the models do.
func TestGroupsThatTakeWhatThereIs(t *testing.T) {
	all := []form{{policy: engine.CalendarWindow(10, engine.Day, time.UTC)}, {policy: engine.CalendarWindow(40, engine.Month, time.UTC)}}
	for _, f := range forms {
		if len(f.quotas) == 0 {
			all = append(all, f)
		}
	}
	groupsAreTheModels(t, all, true)
}

func groupsAreTheModels(t *testing.T, forms []form, upTo bool) {
	calls := 3000
	if testing.Short() {
		calls = 300
	}
	w := newWorld(t)
	c, err := connect(w.Addr())
	require.NoError(t, err)
	t.Cleanup(c.Close)
	random := rand.New(rand.NewPCG(1, 13))
	var members []*member
	for _, f := range forms {
		l, err := NewLimit(f.policy, f.terms)
		require.NoError(t, err)
		m := &member{limit: l}
		if !l.IsOfQuotas() {
			m.quotas = append(m.quotas, Quota{})
		}
		for _, policy := range f.quotas {
			quota, err := l.Quota(f.policy, policy)
			require.NoError(t, err)
			m.quotas = append(m.quotas, quota)
		}
		members = append(members, m)
	}
	admissions, refusals := 0, 0
	for i := range calls {
		switch random.IntN(4) {
		case 0:
			w.set(w.now + random.Int64N(200_000))
		case 1:
			w.set(w.now + random.Int64N(3_000_000))
		}
		for i, m := range members {
			for key := range m.keys {
				if !w.Exists(fmt.Sprintf("%d:%d", i, key)) {
					m.keys[key] = Model{} // the key expired: see TestScriptsAreTheModel
				}
			}
		}
		var groups [][]Item
		var want []Answer
		for range 1 + random.IntN(3) {
			var group []Item
			var models []*Model
			back := random.IntN(5) == 0
			for _, place := range random.Perm(2 * len(members))[:1+random.IntN(4)] {
				m, key := members[place/2], place%2
				name := fmt.Sprintf("%d:%d", place/2, key)
				quota := m.quotas[random.IntN(len(m.quotas))]
				n := random.Uint64N(m.limit.quota(Ask{Quota: quota}).Tokens/8+2) + 1
				a := Ask{Need: n, Want: n, Quota: quota, Window: AnyWindow}
				if back {
					a = Ask{Returned: n, Quota: quota, Window: AnyWindow}
				}
				if upTo && !back && random.IntN(2) == 0 {
					a.All, a.Want = true, random.Uint64N(2*n)+1
				}
				group, models = append(group, Item{m.limit, name, a}), append(models, &m.keys[key])
			}
			answers, admitted := expect(w.now, group, models)
			if want = append(want, answers...); admitted {
				admissions++
			} else {
				refusals++
			}
			groups = append(groups, group)
		}
		got := make([]Answer, len(want))
		require.NoError(t, RunTogether(context.Background(), c, groups, got))
		require.Equal(t, want, got, "call %d", i)
	}
	assert.Greater(t, admissions, calls/4)
	assert.Greater(t, refusals, calls/10)
}

// A key with a foreign value does not affect the decision of its group.
func TestGroupsThatCannotBe(t *testing.T) {
	w := newWorld(t)
	c, err := connect(w.Addr())
	require.NoError(t, err)
	t.Cleanup(c.Close)
	l := limitOf(t, engine.FixedWindow(3, 1e9))
	_, err = w.Lpush("list", "x")
	require.NoError(t, err)
	answers := make([]Answer, 2)
	require.NoError(t, RunTogether(context.Background(), c, [][]Item{{{l, "list", strict(1)}, {l, "key", strict(1)}}}, answers))
	assert.True(t, answers[0].Foreign)
	assert.EqualValues(t, 1, answers[1].Granted)

	for name, groups := range map[string][][]Item{
		"twice in one group": {{{l, "key", strict(1)}, {l, "key", strict(2)}}},
		"nothing else":       {{{l, "key", strict(1)}, {l, "other", Ask{Debt: 1}}}},
		"want 1 to 64":       nil,
	} {
		assert.ErrorContains(t, RunTogether(context.Background(), c, groups, answers), name)
	}
}
