package serve

import (
	"net/http"
	"sync/atomic"

	"github.com/weir-go/weir/cmd/internal/admin"
)

// A page is the administrator's page. A reload may replace, add or remove it.
type page struct {
	admin      atomic.Pointer[admin.Admin]  // nil if there is none
	lastReload atomic.Pointer[admin.Reload] // the last reload
	access     atomic.Pointer[admin.Access] // nil if no token is required
}

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a := p.admin.Load(); a != nil { // nil if a reload has just removed the page
		a.Handler().ServeHTTP(w, r)
	}
}

// replace makes next the current page; nil means no page. It ends the event streams of the previous page.
func (p *page) replace(next *admin.Admin) {
	if previous := p.admin.Swap(next); previous != nil && previous != next {
		_ = previous.Close() // Close always returns nil
	}
}

func (p *page) close() {
	if a := p.admin.Load(); a != nil {
		_ = a.Close() // Close always returns nil
	}
}
