package sealed

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

// TestUsesTriedAgain: after the first use of an id, every other use is Repeated until the id has expired.
func TestUsesTriedAgain(t *testing.T) {
	for _, every := range []time.Duration{time.Second, 9 * time.Second, time.Minute, 5 * time.Minute} {
		t.Run(every.String(), func(t *testing.T) {
			now := time.Unix(1_800_000_000, 0)
			clock := func() time.Time { return now }
			u, err := NewUses(10*time.Minute, 100, engine.ClockFunc(clock))
			require.NoError(t, err)
			defer u.Close()
			u.WithClock(clock)
			s := New("x")
			o, err := s.Open(s.Seal(nil, u.Expires(0)))
			require.NoError(t, err)
			for at := time.Duration(0); at < 10*time.Minute; at += every {
				got, err := u.Use(context.Background(), o)
				require.NoError(t, err)
				if at == 0 {
					require.Equal(t, First, got)
				} else {
					require.Equal(t, Repeated, got, "after %v", at)
				}
				now = now.Add(every)
			}
		})
	}
}
