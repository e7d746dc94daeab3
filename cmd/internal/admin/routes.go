package admin

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The page and what it loads.
//
//go:embed page
var embedded embed.FS

// routes returns the handler of everything. Probes ask by the name of a service, and learn one word; the rest is only
// for the names that guard knows.
func (a *Admin) routes(registry *prometheus.Registry) http.Handler {
	open := http.NewServeMux()
	open.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	open.HandleFunc("GET /readyz", a.serveReady)

	own := http.NewServeMux()
	own.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	own.HandleFunc("GET /{$}", servePage)
	own.HandleFunc("GET /{file}", servePage)
	own.HandleFunc("GET /state.json", a.serveState)
	own.HandleFunc("GET /events", a.serveEvents)
	own.HandleFunc("GET /history.json", a.serveHistory)
	own.HandleFunc("POST /key/peek", a.servePeek)
	own.HandleFunc("POST /key/reset", a.serveReset)
	own.HandleFunc("POST /client/peek", a.serveClient)
	if a.config.Pprof {
		own.HandleFunc("GET /debug/pprof/", pprof.Index)
		own.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		own.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		own.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		own.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
		own.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	open.Handle("/", guard(own, a.config.Hosts))
	return open
}

// servePage serves the page and the files that it loads.
func servePage(w http.ResponseWriter, r *http.Request) {
	name := cmp.Or(r.PathValue("file"), "live.html")
	w.Header().Set("Cache-Control", "no-cache")
	http.ServeFileFS(w, r, embedded, "page/"+name)
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}

// answer writes a value as JSON.
func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the only error is that the client is gone
}

func (a *Admin) serveReady(w http.ResponseWriter, _ *http.Request) {
	if err := a.ready(); err != nil {
		say(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	say(w, http.StatusOK, "ready")
}

func (a *Admin) serveState(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, a.state(time.Now()))
}

// serveHistory answers with the rates of all rules over a span of time.
func (a *Admin) serveHistory(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("span")
	view, ok := a.history.view(name)
	if !ok {
		answer(w, http.StatusBadRequest, map[string]string{
			"error": fmt.Sprintf("span=%.20q: want %s", name, strings.Join(spanNames(), ", "))})
		return
	}
	answer(w, http.StatusOK, view)
}

func spanNames() []string {
	names := make([]string, len(spans))
	for i, s := range spans {
		names[i] = s.name
	}
	return names
}
