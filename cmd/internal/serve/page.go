package serve

import (
	"net/http"
	"sync/atomic"

	"github.com/weir-go/weir/cmd/internal/admin"
)

// A page is the administrator's page. Reloads may replace, add and remove it.
type page struct {
	admin    atomic.Pointer[admin.Admin]  // nil for none
	reloaded atomic.Pointer[admin.Reload] // the last one
	access   atomic.Pointer[admin.Access] // nil if no token is required
}

// ServeHTTP implements [http.Handler].
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a := p.admin.Load(); a != nil { // nil: a reload has just removed it
		a.Handler().ServeHTTP(w, r)
	}
}

// replace shows another page, nil for none. The event streams of the previous page end, so that its connections end.
func (p *page) replace(next *admin.Admin) {
	if last := p.admin.Swap(next); last != nil && last != next {
		_ = last.Close() // always nil
	}
}

// close ends the event streams.
func (p *page) close() {
	if a := p.admin.Load(); a != nil {
		_ = a.Close() // always nil
	}
}
