package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/internal/pause"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		assert.NoError(t, pause.For(ctx, time.Second))
		assert.Equal(t, time.Second, time.Since(begin))
		assert.ErrorIs(t, pause.For(ctx, time.Hour), context.DeadlineExceeded)
		assert.Equal(t, time.Minute, time.Since(begin))
	})
}
