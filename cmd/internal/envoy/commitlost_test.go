package envoy

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/envoy/kuadrant"
)

// TestACommitOutlivesItsClient: a commit is completed once, even if its client gives up. If the commit ended with the
// call, its id could be used up without a charge for the cost above the reservation.
func TestACommitOutlivesItsClient(t *testing.T) {
	server := startRedis(t)
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte(strings.Repeat("random ", 6)), 0o600))
	s := storedService(t, reservable, Options{Store: server.connect(t, 10*time.Second), ReservationKey: key})
	g, of := newGateway(t, s), "d: window=a"
	id := g.reserve(of, 30)
	require.EqualValues(t, 970, remains(t, s, of))
	ctx, giveUp := context.WithCancel(context.Background())
	giveUp()
	r := asking(t, of)
	_, err := s.Kuadrant().Commit(ctx, &kuadrant.CommitRequest{
		Domain: r.Domain, Descriptors: r.Descriptors, ReservationId: id, ActualAmount: 130,
	})
	require.NoError(t, err)
	assert.EqualValues(t, 870, remains(t, s, of))
	g.commit(of, id, 130)
	assert.EqualValues(t, 870, remains(t, s, of), "it tries again")
}
