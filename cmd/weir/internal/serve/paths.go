package serve

import (
	"net/http"

	"github.com/weir-go/weir/cmd/weir/internal/config"
)

// ambiguous answers 400 to a request with a path that servers read in several ways, if the file wants that, and reports
// whether it did.
func (g *generation) ambiguous(w http.ResponseWriter, r *http.Request) bool {
	if g.file.AmbiguousPaths != config.AmbiguousRefuse {
		return false
	}
	reason := config.Ambiguity(r.URL)
	if reason == "" {
		return false
	}
	fail(w, g.file.Response.Body, http.StatusBadRequest, "The path can be read in several ways, because of "+reason)
	return true
}
