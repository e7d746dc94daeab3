package serve

import (
	"net/http"

	"github.com/weir-go/weir/cmd/internal/rulefile"
)

type routes struct {
	file     *rulefile.File
	handlers []http.Handler // handlers of file.Routes
	fallback http.Handler   // for all other requests; nil if there is none
}

func (rs *routes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for i, next := range rs.handlers {
		if rs.file.Routes[i].Match.Matches(r) {
			next.ServeHTTP(w, r)
			return
		}
	}
	if rs.fallback == nil {
		fail(w, r, rs.file.Response.Body, http.StatusNotFound, "There is no upstream for this request")
		return
	}
	rs.fallback.ServeHTTP(w, r)
}
