package actions

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

func client(addr netip.Addr) netip.Prefix {
	bits := 64
	if addr.Is4() {
		bits = 32
	}
	p, _ := addr.Prefix(bits)
	return p
}

func (f *fixture) note(addr, user, agent string, keeps bool) {
	from := Sender{User: user, Agent: agent}
	a := netip.MustParseAddr(addr)
	if from.Client = client(a); keeps {
		from.Addr = a
	}
	f.Note(from)
}

// TestABanOfMany checks the warnings about a ban, with and without stored addresses.
func TestABanOfMany(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		f := newFixture(t, "")
		for i := range 20 {
			f.note("192.0.2.7", fmt.Sprint("user", i%6), "one program", keeps)
			f.note("192.0.2.8", "", fmt.Sprint("program", i), keeps)
			f.note("192.0.2.9", "the user", "the program", keeps)
			f.note(fmt.Sprintf("2001:db8::%d", i), "", "a program", keeps) // all are one client
			f.note(fmt.Sprintf("198.51.100.%d", i%4), "", "", keeps)
		}
		warned := func(kind Kind, target string) (Sighting, []string) {
			a := f.of(kind, target)
			return f.Preview(&a, client, keeps)
		}
		seen, warnings := warned(Ban, "192.0.2.7")
		assert.Equal(t, Sighting{true, 20, 1, 6, 1}, seen)
		assert.Equal(t, []string{"many share the address: 6 different users and 1 different programs (User-Agent) in 20 requests of the last 10 minutes"}, warnings)
		_, warnings = warned(Ban, "192.0.2.8")
		assert.Len(t, warnings, 1)
		for _, kind := range []Kind{Exempt, Shadow} {
			seen, warnings = warned(kind, "192.0.2.8")
			assert.Equal(t, 20, seen.Agents)
			assert.Empty(t, warnings, kind)
		}
		_, warnings = warned(Ban, "192.0.2.9")
		assert.Empty(t, warnings)
		seen, warnings = warned(Ban, "203.0.113.1")
		assert.Equal(t, Sighting{Known: true}, seen, "nothing was noted")
		assert.Empty(t, warnings)

		seen, warnings = warned(Ban, "one:ip:192.0.2.7")
		assert.Equal(t, 6, seen.Users)
		assert.Len(t, warnings, 1, "a key that is an address")
		seen, warnings = warned(Ban, "one:text:192.0.2.7")
		assert.False(t, seen.Known)
		assert.Empty(t, warnings)
		_, warnings = warned(Ban, "one")
		assert.Equal(t, []string{"every request that the rule one applies to is refused"}, warnings)

		seen, warnings = warned(Ban, "2001:db8::/64")
		assert.Equal(t, 20, seen.Requests)
		assert.Empty(t, warnings)
		_, warnings = warned(Ban, "2001:db8::1")
		assert.Equal(t, []string{"one client has all of 2001:db8::/64, and can continue from another address there"}, warnings)

		seen, warnings = warned(Ban, "198.51.100.0/24")
		assert.Equal(t, keeps, seen.Known)
		if keeps {
			assert.Equal(t, 4, seen.Clients)
			assert.Empty(t, warnings)
			f.note("198.51.100.9", "", "", true)
			_, warnings = warned(Ban, "198.51.100.0/24")
			assert.Equal(t, []string{"5 different clients were seen in it within the last 10 minutes"}, warnings)
		} else {
			assert.Equal(t, []string{"the number of its clients is not known, because addresses are only kept with keys: full"}, warnings)
		}
		f.advance(sampleAge + time.Second)
		seen, _ = warned(Ban, "192.0.2.7")
		assert.Zero(t, seen.Requests, "that is long ago")
	}
}

// TestWhatIsNotedIsBounded: the number of noted requests is bounded, per second and in total.
func TestWhatIsNotedIsBounded(t *testing.T) {
	f := newFixture(t, "")
	for range 3 {
		n := 0
		for range 1000 {
			if f.Seen.Wants() {
				n++
			}
		}
		assert.Equal(t, samplesPerSecond, n)
		f.Refresh()
	}
	for i := range maxSamples + 10 {
		f.note("192.0.2.7", fmt.Sprint(i), "", true)
	}
	a := f.of(Ban, "192.0.2.7")
	seen, _ := f.Preview(&a, client, true)
	assert.Equal(t, maxSamples, seen.Requests)
	assert.Equal(t, maxSamples, seen.Users)
	assert.LessOrEqual(t, uintptr(cap(f.Seen.ring))*unsafe.Sizeof(sample{}), uintptr(800_000))
}
