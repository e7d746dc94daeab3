package redislimit

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// stuck is a client whose Close does not return, as may happen with rueidis.
type stuck struct {
	rueidis.Client
	release chan struct{}
}

func (s stuck) Mode() rueidis.ClientMode { return rueidis.ClientModeStandalone }
func (s stuck) Close()                   { <-s.release }

func TestCloseHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stuck{release: make(chan struct{})}
		defer close(s.release)
		client, err := NewClient(s)
		require.NoError(t, err)
		client.ownsConnection = true
		start := time.Now()
		require.NoError(t, client.Close())
		require.Equal(t, closeTime, time.Since(start))
	})
}
