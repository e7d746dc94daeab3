package front

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/weir-go/weir/cmd/internal/envoy"
)

// oneLine replaces line ends in a name, so that a value from a request cannot start a new line.
var oneLine = strings.NewReplacer("\n", "_", "\r", "_")

// Debug serves the pages for operators: /rlconfig, /stats and, for all other paths, the live page.
func Debug(service *envoy.Service, page http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /rlconfig", func(w http.ResponseWriter, _ *http.Request) { _ = service.WriteRules(w) })
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) {
		for _, c := range service.Counters() {
			_, _ = fmt.Fprintf(w, "%s: %d\n", oneLine.Replace(c.Name), c.Value)
		}
		for _, t := range service.Tables() {
			_, _ = fmt.Fprintf(w, "weir.table.%s: keys=%d evictions=%d no_room=%d bytes=%d\n", t.Name, t.Keys, t.Evictions,
				t.NoRoom, t.Bytes)
		}
	})
	mux.Handle("/", page)
	return mux
}
