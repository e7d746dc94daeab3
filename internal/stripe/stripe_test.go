package stripe

import (
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/internal/testalloc"
)

func TestEveryEventIsCountedOnce(t *testing.T) {
	c := New()
	stop, read := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(read)
		for last := c.Totals(); ; {
			now := c.Totals()
			for kind := range now {
				if now[kind] < last[kind] {
					t.Errorf("kind %d fell from %d to %d", kind, last[kind], now[kind])
				}
			}
			last = now
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 1000 * Kinds {
				c.Add(i % Kinds)
			}
		})
	}
	all.Wait()
	close(stop)
	<-read
	assert.Equal(t, [Kinds]uint64{8000, 8000, 8000, 8000, 8000, 8000, 8000, 8000}, c.Totals())
	assert.Zero(t, testalloc.PerCall(func() { c.Add(1) }))
}

func TestStripesShareNoLine(t *testing.T) {
	assert.Equal(t, uintptr(128), unsafe.Sizeof(stripe{}))
}
