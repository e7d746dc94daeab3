package reading

import (
	"math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
)

// With a Parsed, calls with the same finder find a client's address only once. Without a Parsed, it is found each time.
func TestTheClientIsFoundOnce(t *testing.T) {
	found := 0
	find := func() netip.Addr {
		found++
		return netip.AddrFrom4([4]byte{192, 0, 2, byte(found)})
	}
	r := &http.Request{URL: &url.URL{Path: "/"}}
	kept, _ := once(r)
	one, other := new(int), new(string)
	for range 3 {
		assert.Equal(t, "192.0.2.1", ClientAddr(kept, one, find).String())
	}
	assert.Equal(t, "192.0.2.2", ClientAddr(kept, other, find).String())
	assert.Equal(t, "192.0.2.3", ClientAddr(r, one, find).String())
	assert.Equal(t, "192.0.2.4", ClientAddr(r, one, find).String())
}

// With a Parsed, a line of a field is trimmed only once for all rules. The result is the same as without a Parsed.
func TestLinesOfFieldsAreReadOnce(t *testing.T) {
	m := &Match{Headers: []Field{HeaderField("X-Kind", "v")}}
	long := &http.Request{URL: &url.URL{Path: "/"}, Header: http.Header{"X-Kind": {string(make([]byte, 8<<10)), "V\u3000"}}}
	kept, p := once(long)
	assert.True(t, m.Meets(kept, nil))
	first := p.work
	for range 10 {
		assert.True(t, m.Meets(kept, nil))
		assert.False(t, m.IsCertain(kept, nil), "only some servers take the blank off")
	}
	assert.Less(t, p.work-first, 10*10, "it is not read again")
	random := rand.New(rand.NewPCG(5, 6))
	for range 1000 {
		line := ""
		for range random.IntN(6) {
			line += []string{"v", "V", " ", "\t", "\u3000", "\x85"}[random.IntN(6)]
		}
		r := &http.Request{URL: &url.URL{Path: "/"}, Header: http.Header{"X-Kind": {line}}}
		kept, _ := once(r)
		assert.Equal(t, m.Meets(r, nil), m.Meets(kept, nil), "%q", line)
		assert.Equal(t, m.IsCertain(r, nil), m.IsCertain(kept, nil), "%q", line)
		assert.Equal(t, m.Matches(r), m.Matches(kept), "%q", line)
	}
}
