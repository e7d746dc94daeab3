package proxy

import (
	"net/http/httputil"
	"sync"
)

// buffers are reused to copy answers. If each answer allocated a buffer, most of the garbage collector's work would
// come from these buffers.
type buffers struct{ pool sync.Pool }

const bufferSize = 32 << 10 // the same as in httputil.ReverseProxy

// Buffers has the buffers for all answers.
var Buffers httputil.BufferPool = &buffers{sync.Pool{New: func() any { return new([bufferSize]byte) }}}

func (b *buffers) Get() []byte { return b.pool.Get().(*[bufferSize]byte)[:] }

func (b *buffers) Put(buffer []byte) { b.pool.Put((*[bufferSize]byte)(buffer)) }
