package atomicbucket

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestStateKeepsItsFieldsApart(t *testing.T) {
	for _, tag := range []Tag{NeverUsed, Free, Claimed, Tentative, Live} {
		for _, version := range []uint64{0, 1, 127} {
			for _, payload := range []uint64{0, 1, payloadMask} {
				s := NewState(tag, version, payload)
				assert.Equal(t, tag, s.Tag())
				assert.Equal(t, version, s.Version())
				assert.Equal(t, payload, s.Payload())
				assert.Equal(t, tag == Live, s.IsLive(), "%v", s)
			}
		}
	}
	assert.Equal(t, State(0), NewState(NeverUsed, 0, 0), "the zero word is a slot never used")
	assert.Equal(t, NewState(Live, 1, 2), NewState(Live, 1+1<<VersionBits, 2+1<<PayloadBits), "version and payload count in a circle")
}

func TestStateNames(t *testing.T) {
	assert.Equal(t, "LIVE v3 0x10", NewState(Live, 3, 16).String())
	assert.Equal(t, "0 v0 0x0", State(0).String())
	assert.Equal(t, "Tag(7)", Tag(7).String())
	assert.Equal(t, "FREE", Free.String())
}
