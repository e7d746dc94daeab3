package proxy

import (
	"net/http/httputil"
	"sync"
)

// buffers has the buffers in which answers are copied. Without them every answer allocates one, however short it is,
// and this causes most of the collector's work.
type buffers struct{ pool sync.Pool }

const bufferSize = 32 << 10 // the same as in httputil.ReverseProxy

// Buffers is shared by all answers.
var Buffers httputil.BufferPool = &buffers{sync.Pool{New: func() any { return new([bufferSize]byte) }}}

// Get implements [httputil.BufferPool].
func (b *buffers) Get() []byte { return b.pool.Get().(*[bufferSize]byte)[:] }

// Put implements [httputil.BufferPool].
func (b *buffers) Put(buffer []byte) { b.pool.Put((*[bufferSize]byte)(buffer)) }
