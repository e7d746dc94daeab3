package resp

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

// TestEnterAndRelease: a key can have as many requests in flight as the limit says. The release of an id makes room
// only once.
func TestEnterAndRelease(t *testing.T) {
	d := open(t)
	enter := func() map[string]string { return d.ask("WEIR.ENTER a LIMIT 2") }
	first, second := enter(), enter()
	require.Equal(t, "1", first["allowed"])
	require.Equal(t, "0", second["remaining"])
	assert.Equal(t, "*8 $2 id $-1 $7 allowed :0 $5 limit :2 $9 remaining :0", flat(d.says(resp("WEIR.ENTER a LIMIT 2"))))
	assert.Equal(t, "1", d.ask("WEIR.ENTER b LIMIT 3 COST 3")["allowed"])
	assert.Equal(t, ":1 :0 :0", flat(d.says(resp("WEIR.RELEASE "+first["id"], "WEIR.RELEASE "+first["id"], "WEIR.RELEASE "+first["id"]))))
	require.Equal(t, "1", enter()["allowed"])
	require.Equal(t, "0", enter()["allowed"])
	assert.Equal(t, "0", d.ask("WEIR.ENTER a LIMIT 2 COST 3")["allowed"])

	// After some time, an unreleased place is forgotten. If it is released afterwards, that makes no room.
	d.clock.nanos.Add(int64(2 * time.Minute))
	require.Equal(t, "1", enter()["allowed"])
	require.Equal(t, "1", enter()["allowed"])
	assert.Equal(t, ":0", flat(d.says(resp("WEIR.RELEASE "+second["id"]))))
	require.Equal(t, "0", enter()["allowed"])
	require.Equal(t, ":0", flat(d.says(resp("EXISTS a"))), "what is in flight is apart from what is taken")
}

// TestPlacesThatAreNone: an id that does not belong to a place is an error. So is a number of places that is out of
// range.
func TestPlacesThatAreNone(t *testing.T) {
	d := open(t)
	hold := d.ask("WEIR.HOLD a LIMIT 1/s")["id"]
	place := d.ask("WEIR.ENTER a LIMIT 1")["id"]
	const forged, syntax = "-ERR no such id: it was not sealed with the key of this server", "-ERR syntax error: want WEIR.ENTER key LIMIT n [COST n]"
	for sent, want := range map[string]string{
		"WEIR.RELEASE x": forged, "WEIR.RELEASE " + hold: forged, "WEIR.SETTLE " + place + " 1": forged,
		"WEIR.ENTER a MOST 1": syntax, "WEIR.ENTER a LIMIT 1 COST": syntax, "WEIR.ENTER a LIMIT 1 MOST 1": syntax,
		"WEIR.ENTER a LIMIT 65536":                             "-ERR value is not an integer or out of range: LIMIT '65536': want 1 to 65535",
		"WEIR.ENTER a LIMIT 1 COST 0":                          "-ERR value is not an integer or out of range: COST '0': want 1 to 65535",
		"WEIR.ENTER " + strings.Repeat("k", 5000) + " LIMIT 1": "-ERR a key of 5000 bytes: want at most 4096 of what is in flight",
	} {
		assert.Equal(t, want, flat(d.says(resp(sent))), sent)
	}
	none := *d.settings.Load()
	none.Places = nil
	d.settings.Store(&none)
	for _, sent := range []string{"WEIR.ENTER a LIMIT 1", "WEIR.RELEASE " + place} {
		assert.Equal(t, "-ERR requests in flight are not counted: write for example in_flight: 1m in redis: of the rule file", flat(d.says(resp(sent))))
	}
}

// TestSettlesCrowdOutNoReleases: ids of released places have separate room. Used ids of holds do not fill it.
func TestSettlesCrowdOutNoReleases(t *testing.T) {
	d := open(t)
	holds, err := NewHolds(1, d.clock.now, engine.ClockFunc(d.clock.now))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, holds.Uses.Close()) })
	crowded := *d.settings.Load()
	crowded.Holds = holds
	d.settings.Store(&crowded)
	for outcome, n := "", 0; outcome != "late"; n++ {
		require.Less(t, n, 1000)
		outcome = d.ask("WEIR.SETTLE " + d.ask("WEIR.HOLD other LIMIT 1000/s")["id"] + " 1")["outcome"]
	}
	for range 20 {
		id := d.ask("WEIR.ENTER a LIMIT 1")["id"]
		require.Equal(t, ":1 :0", flat(d.says(resp("WEIR.RELEASE "+id, "WEIR.RELEASE "+id))))
	}
}

// TestReleasesWithoutRoom: if there is no room to remember a release, the release is an error, and the place stays
// taken. A repeated or late release frees nothing and is not an error.
func TestReleasesWithoutRoom(t *testing.T) {
	d := open(t)
	places, err := NewPlaces(time.Minute, 1, engine.Evict, d.clock.now, engine.ClockFunc(d.clock.now))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, places.Close()) })
	few := *d.settings.Load()
	few.Places = places
	d.settings.Store(&few)
	const full = "-ERR no room to remember the release: the place stays taken until in_flight has passed or a later release; raise max_keys, and start weir again"
	late, first, id, answer := d.ask("WEIR.ENTER a LIMIT 2")["id"], "", "", ":1"
	for n := 0; answer == ":1"; n++ {
		require.Less(t, n, 1000)
		id = d.ask("WEIR.ENTER a LIMIT 2")["id"]
		require.NotEqual(t, "$-1", id)
		if answer = flat(d.says(resp("WEIR.RELEASE " + id))); n == 0 {
			first = id
		}
	}
	require.Equal(t, full, answer)
	for range 3 {
		assert.Equal(t, full, flat(d.says(resp("WEIR.RELEASE "+id))))
	}
	assert.Equal(t, ":0", flat(d.says(resp("WEIR.RELEASE "+first))), "it was left before")
	assert.Equal(t, "0", d.ask("WEIR.ENTER a LIMIT 2")["allowed"], "it counts on")
	d.clock.nanos.Add(int64(2 * time.Minute))
	assert.Equal(t, ":0", flat(d.says(resp("WEIR.RELEASE "+late))), "what it had is free already")

	d.clock.nanos.Add(int64(time.Minute))
	id = d.ask("WEIR.ENTER a LIMIT 1")["id"]
	assert.Equal(t, ":1 :0", flat(d.says(resp("WEIR.RELEASE "+id, "WEIR.RELEASE "+id))), "there is room again")
}

// TestLateReleasesTakeNoRoom: a late release is not remembered, because its place is already free.
func TestLateReleasesTakeNoRoom(t *testing.T) {
	d := open(t)
	places, err := NewPlaces(time.Minute, 1, engine.Evict, d.clock.now, engine.ClockFunc(d.clock.now))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, places.Close()) })
	few := *d.settings.Load()
	few.Places = places
	d.settings.Store(&few)
	var releases []string
	for range 1000 {
		releases = append(releases, "WEIR.RELEASE "+d.ask("WEIR.ENTER a LIMIT 1000")["id"])
	}
	d.clock.nanos.Add(int64(2 * time.Minute))
	require.Equal(t, strings.Repeat(":0\r\n", len(releases)), d.says(resp(releases...)))
	require.Equal(t, ":1", flat(d.says(resp("WEIR.RELEASE "+d.ask("WEIR.ENTER a LIMIT 1000")["id"]))))
}
