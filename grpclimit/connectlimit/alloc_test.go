package connectlimit_test

import (
	"context"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-go/weir/grpclimit/connectlimit"
	"github.com/weir-go/weir/internal/testalloc"
	"github.com/weir-go/weir/internal/testrace"
	"github.com/weir-go/weir/rpclimit"
)

func TestAnAdmittedCallAllocatesNothing(t *testing.T) {
	if testrace.Enabled {
		t.Skip("allocations are not counted under the race detector")
	}
	text, err := rpclimit.MetadataValue("x-api-key", rpclimit.Peer)
	require.NoError(t, err)
	for want, key := range map[float64]rpclimit.KeyFunc{0: rpclimit.Peer, 1: text} { // the 1 is for the canonical name
		set := one(t, rpclimit.Limit{Limiter: burst(t, 1<<20), Key: key})
		intercepted := connectlimit.New(set).WrapUnary(func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) { return nil, nil })
		r := connect.NewRequest(wrapperspb.Int64(1))
		r.Header().Set("X-Api-Key", "0123456789abcdef")
		assert.Equal(t, want, testalloc.PerCall(func() { _, _ = intercepted(context.Background(), r) }))
	}
}
