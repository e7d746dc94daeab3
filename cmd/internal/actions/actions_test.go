package actions

import (
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testlog"
	"github.com/weir-go/weir/limits"
)

// A fixture is a table with a clock that the test moves.
type fixture struct {
	*Table
	log testlog.Log
	now atomic.Int64
}

func newFixture(t testing.TB, folder string) *fixture {
	f := &fixture{}
	f.now.Store(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	f.Table = New(Config{
		Now: func() time.Time { return time.Unix(0, f.now.Load()) },
		Log: slog.New(slog.NewTextHandler(&f.log, nil)),
	})
	require.NoError(t, f.Open(folder))
	return f
}

func (f *fixture) advance(d time.Duration) { f.now.Add(int64(d)) }

// The function of makes an action of a kind. The target is a network, the name of a rule, or "rule:key".
func (f *fixture) of(kind Kind, target string) Action {
	a := Action{Kind: kind, Who: "alice", Why: "a test"}
	if p, err := ParseNetwork(target); err == nil {
		a.Network = p
		return a
	}
	var key string
	if a.Rule, key, _ = strings.Cut(target, ":"); key != "" {
		a.Key, a.Form = f.KeyID(key), "a header"
	}
	return a
}

func (f *fixture) add(t testing.TB, kind Kind, target string) *Active {
	a, err := f.Add(f.of(kind, target), time.Hour)
	require.NoError(t, err)
	return a
}

// paths has two rules, each for the paths that contain its name. The key is the value of the header field Key.
var paths = &Rules{Addr: func(r *http.Request) netip.Addr {
	addr, _ := netip.ParseAddr(r.RemoteAddr)
	return addr
}, List: []Rule{path("one"), path("two")}}

func path(name string) Rule {
	return Rule{
		Name: name, Form: "a header",
		Meets: func(r *http.Request) bool { return strings.Contains(r.URL.Path, name) },
		Text:  func(r *http.Request) (string, bool) { return r.Header.Get("Key"), r.Header.Get("Key") != "" },
	}
}

// judged returns what the actions mean for a request: banned, exempt, or the mode of each rule.
func (f *fixture) judged(addr, path, key string) string {
	r := httptest.NewRequest("GET", path, nil)
	r.RemoteAddr = addr
	r.Header.Set("Key", key)
	v := f.Judge(paths, r)
	switch {
	case v.Banned != nil:
		return "banned by " + v.Banned.Action.String()
	case v.Exempt != nil:
		return "exempt"
	case !v.Any():
		return ""
	}
	words := map[limits.Mode]string{limits.AsWritten: "-", limits.InShadow: "shadow", limits.NotApplied: "exempt"}
	return words[v.Mode(0)] + " " + words[v.Mode(1)]
}

// TestWhichActionCounts: in each case, the actions have the expected effect on each request.
func TestWhichActionCounts(t *testing.T) {
	type row struct{ addr, path, key, want string }
	for name, c := range map[string]struct {
		actions map[string]Kind
		rows    []row
	}{
		"a network, by the longest prefix": {map[string]Kind{"192.0.2.0/24": Ban, "192.0.2.7": Exempt, "192.0.2.8/29": Shadow}, []row{
			{"192.0.2.1", "/one", "", "banned by ban of the network 192.0.2.0/24"}, {"192.0.2.7", "/one", "", "exempt"},
			{"192.0.2.9", "/one", "", "shadow shadow"}, {"192.0.3.1", "/one", "", ""}, {"2001:db8::1", "/one", "", ""},
		}},
		"both families, and no address": {map[string]Kind{"0.0.0.0/0": Ban, "2001:db8::/64": Ban, "::/0": Shadow}, []row{
			{"192.0.2.1", "/", "", "banned by ban of the network 0.0.0.0/0"},
			{"2001:db8::ffff:1", "/", "", "banned by ban of the network 2001:db8::/64"},
			{"2001:db8:0:1::1", "/", "", "shadow shadow"}, {"@", "/one", "", ""},
		}},
		"a rule": {map[string]Kind{"one": Ban, "two": Shadow}, []row{
			{"192.0.2.1", "/one", "", "banned by ban of the rule one"}, {"192.0.2.1", "/two", "", "- shadow"}, {"192.0.2.1", "/", "", ""},
			{"192.0.2.1", "/one/two", "", "banned by ban of the rule one"}, {"192.0.2.1", "/two/one", "", "banned by ban of the rule one"},
		}},
		"a key before its rule": {map[string]Kind{"one": Ban, "one:a": Exempt, "one:b": Shadow, "two:a": Ban, "two": Exempt}, []row{
			{"192.0.2.1", "/one", "a", "exempt -"}, {"192.0.2.1", "/one", "b", "shadow -"}, {"192.0.2.1", "/one", "c", "banned by ban of the rule one"},
			{"192.0.2.1", "/two", "a", "banned by ban of a key of the rule two"}, {"192.0.2.1", "/two", "b", "- exempt"},
			{"192.0.2.1", "/one/two", "a", "banned by ban of a key of the rule two"}, {"192.0.2.1", "/one/two", "b", "shadow exempt"},
		}},
		"an exempt network is past bans of rules and keys, and a shadow is not": {
			map[string]Kind{"192.0.2.0/24": Exempt, "198.51.100.0/24": Shadow, "one": Ban, "two:a": Exempt}, []row{
				{"192.0.2.1", "/one", "", "exempt"}, {"198.51.100.1", "/one", "", "banned by ban of the rule one"},
				{"198.51.100.1", "/two", "a", "shadow exempt"}, {"203.0.113.1", "/one", "", "banned by ban of the rule one"},
			}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "")
			for target, kind := range c.actions {
				f.add(t, kind, target)
			}
			for _, r := range c.rows {
				assert.Equal(t, r.want, f.judged(r.addr, r.path, r.key), "%s %s %s", r.addr, r.path, r.key)
			}
		})
	}
}

// TestAnotherFormOfKey: an action for a key does not apply to a key with the same text but another form.
func TestAnotherFormOfKey(t *testing.T) {
	f := newFixture(t, "")
	a := f.of(Exempt, "one:a")
	a.Form = "a cookie"
	_, err := f.Add(a, time.Hour)
	require.NoError(t, err)
	assert.Empty(t, f.judged("192.0.2.1", "/one", "a"))
}

// TestAnActionEnds: an action ends exactly at its time. Refresh only removes it from the list.
func TestAnActionEnds(t *testing.T) {
	f := newFixture(t, "")
	f.add(t, Ban, "192.0.2.7")
	f.advance(time.Hour - 1)
	assert.NotEmpty(t, f.judged("192.0.2.7", "/", ""))
	f.advance(1)
	assert.Empty(t, f.judged("192.0.2.7", "/", ""))
	assert.Empty(t, f.List())
	assert.True(t, f.Any())
	f.Refresh()
	assert.False(t, f.Any())
	assert.Contains(t, f.log.String(), `msg="action: begins" id=1 what="ban of the network 192.0.2.7/32" until=2026-01-01T01:00:00.000Z who=alice why="a test"`)
	assert.Contains(t, f.log.String(), `msg="action: its time is over" id=1 what="ban of the network 192.0.2.7/32" who=alice hits=1`)
	f.advance(-time.Hour)
	assert.Empty(t, f.judged("192.0.2.7", "/", ""), "what was forgotten does not come back with the clock")
}

// TestAnEndedActionHidesNone: when an action has ended, an action for a shorter prefix or for the whole rule applies
// again.
func TestAnEndedActionHidesNone(t *testing.T) {
	f := newFixture(t, "")
	for _, target := range []string{"192.0.2.0/24", "one"} {
		_, err := f.Add(f.of(Ban, target), 2*time.Hour)
		require.NoError(t, err)
	}
	f.add(t, Exempt, "192.0.2.7")
	f.add(t, Exempt, "one:a")
	f.advance(time.Hour)
	assert.Equal(t, "banned by ban of the network 192.0.2.0/24", f.judged("192.0.2.7", "/", ""))
	assert.Equal(t, "banned by ban of the rule one", f.judged("198.51.100.1", "/one", "a"))
}

func TestOneActionForATarget(t *testing.T) {
	f := newFixture(t, "")
	f.add(t, Ban, "192.0.2.7")
	f.add(t, Shadow, "::ffff:192.0.2.7")
	require.Len(t, f.List(), 1)
	assert.Equal(t, "shadow shadow", f.judged("192.0.2.7", "/", ""))
	assert.Equal(t, uint64(1), f.Hits(Shadow))
	_, err := f.End(1, "bob")
	require.ErrorIs(t, err, ErrNone)
	ended, err := f.End(2, "bob")
	require.NoError(t, err)
	assert.Equal(t, uint64(1), ended.Hits())
	assert.False(t, f.Any())
	assert.Contains(t, f.log.String(), `msg="action: was ended" id=2 what="shadow of the network 192.0.2.7/32" who=bob hits=1`)
}

func TestNetworks(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.7": "192.0.2.7/32", "192.0.2.0/24": "192.0.2.0/24", "2001:db8::1": "2001:db8::1/128", "2001:DB8::/48": "2001:db8::/48",
		"::ffff:192.0.2.7": "192.0.2.7/32", "::ffff:192.0.2.0/120": "192.0.2.0/24", "::/0": "::/0",
	} {
		p, err := ParseNetwork(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, p.String())
	}
	for text, want := range map[string]string{
		"": "want an address or a network", "192.0.2": "want an address", "fe80::1%eth0": "without a zone", "fe80::%1/64": "without a zone",
		"192.0.2.1/24": "did you mean 192.0.2.0/24?", "::ffff:0:0/95": "write an IPv4 network in IPv4 notation", "192.0.2.0/33": "want an address",
	} {
		_, err := ParseNetwork(text)
		assert.ErrorContains(t, err, want, text)
	}
}

// TestBadActions: if Add returns an error, no action is active afterwards.
func TestBadActions(t *testing.T) {
	f := newFixture(t, t.TempDir())
	for want, change := range map[string]func(*Action){
		`an action "banish": want ban, exempt or shadow`:              func(a *Action) { a.Kind = "banish" },
		"who has 0 characters: want 1 to 64":                          func(a *Action) { a.Who = "" },
		"who has 65 characters: want 1 to 64":                         func(a *Action) { a.Who = strings.Repeat("x", 65) },
		"why has 0 characters: want 1 to 200":                         func(a *Action) { a.Why = "" },
		"why \"a\\nb\": want characters that print":                   func(a *Action) { a.Why = "a\nb" },
		"want either a network or a rule":                             func(a *Action) { a.Rule = "one" },
		"192.0.2.7/24 has bits after the prefix":                      func(a *Action) { a.Network = netip.MustParsePrefix("192.0.2.7/24") },
		"::ffff:192.0.2.0/120: want an IPv4 network in IPv4 notation": func(a *Action) { a.Network = netip.MustParsePrefix("::ffff:192.0.2.0/120") },
	} {
		a := f.of(Ban, "192.0.2.7")
		change(&a)
		_, err := f.Add(a, time.Hour)
		assert.ErrorContains(t, err, want)
	}
	for _, lasts := range []time.Duration{-time.Hour, 0, time.Second - 1, Longest + 1, 1<<63 - 1} {
		_, err := f.Add(f.of(Ban, "192.0.2.7"), lasts)
		assert.ErrorContains(t, err, "want 1s to 720h0m0s", lasts)
	}
	_, err := f.End(1, "")
	require.ErrorContains(t, err, "who has 0 characters")
	assert.False(t, f.Any())
}

func TestTheMostActions(t *testing.T) {
	f := newFixture(t, "")
	for i := range MaxActions {
		_, err := f.Add(f.of(Ban, fmt.Sprintf("10.0.%d.%d", i>>8, i&255)), time.Duration(i+1)*time.Minute)
		require.NoError(t, err)
	}
	_, err := f.Add(f.of(Ban, "192.0.2.7"), time.Hour)
	require.ErrorContains(t, err, "there are already 1000 actions, the maximum")
	f.add(t, Shadow, "10.0.0.0") // replaces another action
	f.advance(2 * time.Minute)
	f.add(t, Ban, "192.0.2.7") // one action has ended
	assert.Len(t, f.List(), MaxActions)
}

// TestAfterARestart: actions survive a restart, and the ids of keys still mean the same keys.
func TestAfterARestart(t *testing.T) {
	folder := t.TempDir()
	f := newFixture(t, folder)
	f.add(t, Ban, "192.0.2.7")
	f.add(t, Exempt, "one:a")
	_, err := f.Add(f.of(Shadow, "two"), time.Minute)
	require.NoError(t, err)
	_, err = f.End(1, "bob")
	require.NoError(t, err)
	info, err := os.Stat(filepath.Join(folder, FileName))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), "it has the secret of the keys")

	next := newFixture(t, folder) // as after a crash: the previous table was not closed
	assert.Equal(t, "exempt -", next.judged("192.0.2.7", "/one", "a"))
	assert.Equal(t, "- shadow", next.judged("192.0.2.7", "/two", "a"))
	next.advance(time.Minute)
	assert.Empty(t, next.judged("192.0.2.7", "/two", "a"), "the end is a time of day")
	assert.Equal(t, uint64(4), next.add(t, Ban, "192.0.2.9").ID, "ids are not given again")
}

// TestAWriteThatFails: an action that could not be written to the file is not active.
func TestAWriteThatFails(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	require.EqualError(t, New(Config{Log: slog.New(slog.DiscardHandler)}).Open(folder), "there is no folder "+folder)
	require.NoError(t, os.Mkdir(folder, 0o700))
	f := newFixture(t, folder)
	require.NoError(t, os.RemoveAll(folder))
	_, err := f.Add(f.of(Ban, "192.0.2.7"), time.Hour)
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.False(t, f.Any())
	require.NoError(t, os.Mkdir(folder, 0o700))
	a := f.add(t, Ban, "192.0.2.7")
	require.NoError(t, os.RemoveAll(folder))
	_, err = f.End(a.ID, "bob")
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.NotEmpty(t, f.judged("192.0.2.7", "/", ""))
}

func TestADamagedFile(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "it is not a file of actions",
		`{"format":2}`:               "format 2: want 1: another version of weir has written it",
		`{"format":1,"secret":"00"}`: "its secret is damaged",
		`{"format":1,"secret":"` + strings.Repeat("0", 64) + `","actions":[{"id":7,"kind":"ban","who":"a","why":"b"}]}`: "action 7: for 0s",
	} {
		folder := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(folder, FileName), []byte(text), 0o600))
		err := New(Config{Log: slog.New(slog.DiscardHandler)}).Open(folder)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, FileName)
	}
	folder := t.TempDir()
	f := newFixture(t, folder)
	f.add(t, Ban, "192.0.2.7")
	require.NoError(t, os.WriteFile(filepath.Join(folder, FileName), []byte("{"), 0o600))
	f.Refresh()
	f.Refresh()
	assert.NotEmpty(t, f.judged("192.0.2.7", "/", ""), "what was read last stays in force")
	assert.Len(t, f.log.With("the actions that were read last stay active"), 1)
	_, err := f.Add(f.of(Ban, "192.0.2.8"), time.Hour)
	require.ErrorContains(t, err, "it is not a file of actions")
}

// TestOneSecretFromTheStart: processes with one folder have the same id for a key, even before the first action.
func TestOneSecretFromTheStart(t *testing.T) {
	folder := t.TempDir()
	a, b := newFixture(t, folder), newFixture(t, folder)
	assert.Equal(t, *a.secret.Load(), *b.secret.Load())
	assert.False(t, a.Any())
	action := a.add(t, Ban, "one:a")
	b.Refresh()
	assert.Equal(t, action.Target, b.of(Ban, "one:a").Target)
	other := newFixture(t, t.TempDir())
	assert.NotEqual(t, *a.secret.Load(), *other.secret.Load())
}

// TestSeveralProcesses: tables with one file have the same actions, and lose none in concurrent changes.
func TestSeveralProcesses(t *testing.T) {
	folder := t.TempDir()
	a, b := newFixture(t, folder), newFixture(t, folder)
	a.add(t, Ban, "one:a")
	assert.False(t, b.Any())
	b.Refresh()
	assert.NotEmpty(t, b.judged("192.0.2.7", "/one", "a"))
	b.Refresh()
	assert.Equal(t, uint64(1), b.List()[0].Hits(), "hits are those of the process, and stay")
	_, err := b.End(1, "bob")
	require.NoError(t, err)
	a.Refresh()
	assert.False(t, a.Any())

	var all sync.WaitGroup
	for i, f := range []*fixture{a, b, newFixture(t, folder)} {
		all.Go(func() {
			for j := range 10 {
				_, err := f.Add(f.of(Ban, fmt.Sprintf("10.0.%d.%d", i, j)), time.Hour)
				assert.NoError(t, err)
			}
		})
	}
	all.Wait()
	ids := map[uint64]bool{}
	for _, f := range []*fixture{a, b, newFixture(t, folder)} {
		f.Refresh()
		assert.Len(t, f.List(), 30)
		for _, a := range f.List() {
			ids[a.ID] = true
		}
	}
	assert.Len(t, ids, 30)
}

// TestAnotherFolder: a reload with another folder writes the active actions there.
func TestAnotherFolder(t *testing.T) {
	f, folder := newFixture(t, ""), t.TempDir()
	f.add(t, Ban, "one:a")
	f.add(t, Ban, "192.0.2.7")
	require.NoError(t, f.Open(folder))
	assert.NotEmpty(t, newFixture(t, folder).judged("198.51.100.1", "/one", "a"))
	other := newFixture(t, "")
	other.add(t, Ban, "one:b")
	other.add(t, Ban, "192.0.2.8")
	require.NoError(t, other.Open(folder))
	assert.Len(t, other.List(), 3)
	assert.Len(t, other.log.With("another secret for keys"), 1)
	f.Refresh()
	assert.NotEmpty(t, f.judged("192.0.2.8", "/", ""))
	require.NoError(t, other.Open(""))
	assert.Len(t, other.List(), 3)
}

// TestFoldersThatMeet: Open merges the actions of a table with those of a folder. If both have an action for the same
// target, the newer one stays. No two actions have the same id. If there are too many actions, Open returns an error
// and changes nothing.
func TestFoldersThatMeet(t *testing.T) {
	folder := t.TempDir()
	there, f := newFixture(t, folder), newFixture(t, "")
	f.add(t, Ban, "192.0.2.1")
	there.add(t, Shadow, "192.0.2.2")
	there.advance(time.Minute)
	there.add(t, Exempt, "192.0.2.1") // newer than the action of f
	there.add(t, Shadow, "192.0.2.3")
	f.advance(2 * time.Minute)
	f.add(t, Ban, "192.0.2.2") // newer than the action in the file
	require.NoError(t, f.Open(folder))
	for _, all := range []*fixture{f, newFixture(t, folder)} {
		assert.Equal(t, "exempt", all.judged("192.0.2.1", "/one", ""))
		assert.Equal(t, "banned by ban of the network 192.0.2.2/32", all.judged("192.0.2.2", "/one", ""))
		assert.Equal(t, "shadow shadow", all.judged("192.0.2.3", "/one", ""))
		ids := map[uint64]bool{}
		for _, a := range all.List() {
			ids[a.ID] = true
		}
		assert.Len(t, ids, 3)
	}

	full := newFixture(t, "")
	for i := range MaxActions - 2 {
		full.add(t, Ban, fmt.Sprintf("10.0.%d.%d", i>>8, i&255))
	}
	before, err := os.ReadFile(filepath.Join(folder, FileName))
	require.NoError(t, err)
	require.ErrorContains(t, full.Open(folder), "with the active ones there are 1001 actions: want at most 1000: end some first")
	after, err := os.ReadFile(filepath.Join(folder, FileName))
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after))
	assert.Len(t, full.List(), MaxActions-2)
	_, err = full.End(full.List()[0].ID, "bob")
	require.NoError(t, err, "it is in memory")
	require.NoError(t, full.Open(folder))
	assert.Len(t, full.List(), MaxActions)
	assert.Len(t, newFixture(t, folder).List(), MaxActions)
}

func TestForgottenTexts(t *testing.T) {
	folder := t.TempDir()
	f := newFixture(t, folder)
	a := f.of(Ban, "one:a")
	a.Text = "text:a-secret-key"
	_, err := f.Add(a, time.Hour)
	require.NoError(t, err)
	f.judged("192.0.2.1", "/one", "a")
	require.NoError(t, f.Forget())
	assert.NotEmpty(t, f.judged("192.0.2.1", "/one", "a"))
	assert.Equal(t, uint64(2), f.List()[0].Hits())
	text, err := os.ReadFile(filepath.Join(folder, FileName))
	require.NoError(t, err)
	assert.NotContains(t, string(text), "a-secret-key")
}

// TestNoActionCostsNothing: without an action, a judgment does not allocate, read the clock or read the request.
func TestNoActionCostsNothing(t *testing.T) {
	table := New(Config{Now: func() time.Time { panic("the clock") }, Log: slog.New(slog.DiscardHandler)})
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		v := table.Judge(nil, nil)
		if table.Any() || v.Any() {
			panic("an action")
		}
	}))
}
