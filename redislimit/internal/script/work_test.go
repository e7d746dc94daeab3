package script

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/weir-go/weir/engine"
)

// A meter runs a script and counts the work that the server must do for it.
type meter struct {
	context.Context
	t                             testing.TB
	store                         rueidis.Client
	instructions, commands, bytes int
}

// Done is called by the interpreter before each instruction.
func (m *meter) Done() <-chan struct{} {
	m.instructions++
	return nil
}

func (m *meter) run(source string, keys, args []string) {
	m.instructions, m.commands, m.bytes = 0, 0, 0
	state := lua.NewState()
	defer state.Close()
	list := func(texts ...string) *lua.LTable {
		table := state.NewTable()
		for _, text := range texts {
			table.Append(lua.LString(text))
		}
		return table
	}
	state.SetGlobal("KEYS", list(keys...))
	state.SetGlobal("ARGV", list(args...))
	command := state.NewFunction(m.command)
	state.SetGlobal("redis", state.SetFuncs(state.NewTable(), nil))
	state.SetField(state.GetGlobal("redis"), "call", command)
	state.SetField(state.GetGlobal("redis"), "pcall", command)
	state.SetContext(m)
	require.NoError(m.t, state.DoString(source))
}

func (m *meter) command(state *lua.LState) int {
	m.commands++
	var words []string
	for i := range state.GetTop() {
		words = append(words, state.CheckAny(i+1).String())
		m.bytes += len(words[i])
	}
	reply, err := m.store.Do(context.Background(), m.store.B().Arbitrary(words...).Build()).ToAny()
	switch reply := reply.(type) {
	case nil:
		require.True(m.t, rueidis.IsRedisNil(err), "%q: %v", words, err)
		state.Push(lua.LFalse)
	case int64:
		state.Push(lua.LNumber(reply))
	case string:
		m.bytes += len(reply)
		state.Push(lua.LString(reply))
	case []any:
		table := state.NewTable()
		appendAll(table, reply)
		state.Push(table)
	}
	return 1
}

// appendAll appends a reply as a script gets it: pairs are flattened and numbers are text.
func appendAll(table *lua.LTable, reply []any) {
	for _, one := range reply {
		if pair, ok := one.([]any); ok {
			appendAll(table, pair)
			continue
		}
		if score, ok := one.(float64); ok {
			one = strconv.FormatFloat(score, 'f', -1, 64)
		}
		table.Append(lua.LString(one.(string)))
	}
}

// The work of a script for one key is bounded, in any state and for any request. A server answers no other client while
// a script runs.
func TestTheWorkOfAScriptIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it counts, in one goroutine: the race detector shows nothing")
	}
	for _, test := range []struct {
		policy                        engine.Policy
		terms                         Terms
		source                        string
		instructions, commands, bytes int
	}{
		{engine.TokenBucket(engine.PerSecond(1000), 1<<32), Terms{}, tokenBucketLua, 500, 3, 200},
		{engine.FixedWindow(1<<32, time.Second), Terms{}, fixedWindowLua, 500, 3, 200},
		{engine.SlidingWindow(1<<24-1, time.Second), Terms{}, slidingWindowLua, 500, 3, 200},
		{engine.SlidingLog(10, time.Second), Terms{}, slidingLogLua, 1050, 25, 1000 + 50*10},
		{engine.SlidingLog(1000, time.Second), Terms{}, slidingLogLua, 1050, 25, 1000 + 50*1000},
		{engine.SlidingLog(4096, time.Second), Terms{}, slidingLogLua, 1050, 25, 1000 + 50*4096},
		{engine.Concurrency(512, time.Second), Terms{}, inFlightLua, 1000 + 40*512, 15, 1000 + 100*512},
		// A refusal that is charged needs twice the work.
		{engine.TokenBucket(engine.PerSecond(1000), 1000), Terms{Refusals: engine.ChargePenalty}, tokenBucketLua, 1000, 3, 200},
		{engine.FixedWindow(1000, time.Second), Terms{Refusals: engine.ChargePenalty}, fixedWindowLua, 1000, 3, 200},
		{engine.SlidingWindow(1000, time.Second), Terms{Refusals: engine.ChargePenalty}, slidingWindowLua, 1000, 3, 200},
		{engine.SlidingLog(4096, time.Second), Terms{Refusals: engine.ChargePenalty}, slidingLogLua, 2100, 50, 1000 + 50*4096},
	} {
		t.Run(form{policy: test.policy, terms: test.terms}.String(), func(t *testing.T) {
			w := newWorld(t)
			l, err := NewLimit(test.policy, test.terms)
			require.NoError(t, err)
			c, err := connect(w.Addr())
			require.NoError(t, err)
			t.Cleanup(c.Close)
			m := &meter{Context: context.Background(), t: t, store: c}
			source := compose(test.source)
			var instructions, commands, bytes int
			var settling struct{ instructions, commands int }
			second, limit := time.Second.Microseconds(), l.tokens
			asks := []Ask{
				{}, {Need: 1}, strict(1), strict(limit), {Need: 1, Want: limit}, strict(limit + 1), {Returned: 1, Window: 1},
				{Returned: limit, Window: 1}, {Debt: 1}, {Returned: limit, Window: 1, Debt: limit}, {Debt: limit, Need: 1, Want: 1},
			}
			held := len(asks)
			asks = append(asks, Ask{Need: 1, Want: 1, Window: AnyWindow}, Ask{Returned: 1}, Ask{Returned: limit}, Ask{Returned: 1, Debt: 1})
			for i, fill := range [][2]Ask{{}, {strict(1)}, {strict(limit)}, {strict(limit), {Debt: limit}}, {strict(limit / 2), strict(limit / 2)}} {
				for _, pass := range []int64{0, second / 2, second, -1, -second} {
					for j, a := range asks {
						w.FlushAll()
						key := fmt.Sprint(i)
						fill[0].Window = AnyWindow
						if window := one(t, l, c, key, fill[0]).Window; j > held {
							a.Window = window
						}
						w.set(w.now + second/2)
						one(t, l, c, key, fill[1])
						w.set(w.now + pass)
						m.run(source, []string{key}, l.write([]Ask{a}))
						if bytes = max(bytes, m.bytes); j > held {
							settling.instructions, settling.commands = max(settling.instructions, m.instructions), max(settling.commands, m.commands)
						} else {
							instructions, commands = max(instructions, m.instructions), max(commands, m.commands)
						}
						w.set(w.now + 3*second)
					}
				}
			}
			t.Logf("%d instructions, %d commands, %d bytes; %+v to settle", instructions, commands, bytes, settling)
			if test.source == slidingLogLua {
				assert.LessOrEqual(t, settling.instructions, 1700)
				assert.LessOrEqual(t, settling.commands, 40)
			} else {
				assert.LessOrEqual(t, settling.instructions, test.instructions)
				assert.LessOrEqual(t, settling.commands, test.commands)
			}
			assert.LessOrEqual(t, instructions, test.instructions)
			assert.LessOrEqual(t, commands, test.commands)
			assert.LessOrEqual(t, bytes, test.bytes)
		})
	}
}

// The work for a group of 64 limits is bounded, too.
func TestTheWorkOfAGroupIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it counts, in one goroutine: the race detector shows nothing")
	}
	w := newWorld(t)
	c, err := connect(w.Addr())
	require.NoError(t, err)
	t.Cleanup(c.Close)
	m := &meter{Context: context.Background(), t: t, store: c}
	var group []Item
	for i := range MaxKeys {
		policy := []engine.Policy{
			engine.TokenBucket(engine.PerSecond(1000), 1000), engine.FixedWindow(1000, time.Second),
			engine.SlidingWindow(1000, time.Second), engine.SlidingLog(1000, time.Second),
		}[i%4]
		group = append(group, Item{limitOf(t, policy), fmt.Sprint(i), strict(10)})
	}
	last := &group[MaxKeys-1].Ask
	for i := range 4 {
		*last = strict([]uint64{1, 1, 1001, 1000}[i])
		keys, args, err := writeGroups([][]Item{group})
		require.NoError(t, err)
		m.run(composeTogether(), keys, args)
		t.Logf("%d instructions, %d commands, %d bytes a limit", m.instructions/MaxKeys, m.commands/MaxKeys, m.bytes/MaxKeys)
		assert.LessOrEqual(t, m.instructions, 600*MaxKeys)
		assert.LessOrEqual(t, m.commands, 4*MaxKeys)
		w.set(w.now + time.Millisecond.Microseconds())
	}
}
