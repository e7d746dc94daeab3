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

// pageFiles has the page and the files that it loads.
//
//go:embed page
var pageFiles embed.FS

type endpoint struct {
	pattern string // of http.ServeMux
	role    role
	serve   http.HandlerFunc
}

// endpoints returns all endpoints behind guard, which checks the Host header.
func (a *Admin) endpoints(registry *prometheus.Registry) []endpoint {
	list := []endpoint{
		{"GET /metrics", viewer, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP},
		{"GET /{$}", viewer, servePage},
		{"GET /{file}", viewer, servePage},
		{"GET /state.json", viewer, a.serveState},
		{"GET /caller.json", viewer, a.serveCaller},
		{"GET /events", viewer, a.serveEvents},
		{"GET /history.json", viewer, a.serveHistory},
		{"POST /key/peek", viewer, a.servePeek},
		{"POST /key/reset", operator, a.serveReset},
		{"POST /client/peek", viewer, a.serveClient},
	}
	if a.config.Actions != nil {
		list = append(list, endpoint{"GET /actions.json", viewer, a.serveActions},
			endpoint{"POST /actions", operator, a.serveAct},
			endpoint{"POST /actions/end", operator, a.serveEnd})
	}
	if a.config.Pprof { // profiles show the command line and the work of goroutines
		list = append(list, endpoint{"GET /debug/pprof/", operator, pprof.Index},
			endpoint{"GET /debug/pprof/cmdline", operator, pprof.Cmdline},
			endpoint{"GET /debug/pprof/profile", operator, pprof.Profile},
			endpoint{"GET /debug/pprof/symbol", operator, pprof.Symbol},
			endpoint{"POST /debug/pprof/symbol", operator, pprof.Symbol},
			endpoint{"GET /debug/pprof/trace", operator, pprof.Trace})
	}
	return list
}

// routes returns the handler of all paths. To /healthz and /readyz it answers one word, for any host and without a
// token. Any other request needs a host that guard allows, and a caller with access.
func (a *Admin) routes(registry *prometheus.Registry) http.Handler {
	public := http.NewServeMux()
	public.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok") })
	public.HandleFunc("GET /readyz", a.serveReady)
	protected := http.NewServeMux()
	for _, e := range a.endpoints(registry) {
		protected.Handle(e.pattern, a.allow(e))
	}
	public.Handle("/", guard(protected, a.config.Hosts))
	return public
}

type callerView struct {
	Who       string `json:"who"`
	Sure      bool   `json:"sure"`       // Who is the name of the token
	MayChange bool   `json:"may_change"` // false if the caller may only read
}

func (a *Admin) serveCaller(w http.ResponseWriter, r *http.Request) {
	c := callerOf(r)
	writeJSON(w, http.StatusOK, callerView{c.name, c.verified, c.role >= operator})
}

func servePage(w http.ResponseWriter, r *http.Request) {
	name := cmp.Or(r.PathValue("file"), "live.html")
	w.Header().Set("Cache-Control", "no-cache")
	http.ServeFileFS(w, r, pageFiles, "page/"+name)
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the only possible error is that the client has gone
}

func (a *Admin) serveReady(w http.ResponseWriter, _ *http.Request) {
	if err := a.ready(); err != nil {
		writeText(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	writeText(w, http.StatusOK, "ready")
}

func (a *Admin) serveState(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, a.state(time.Now()))
}

func (a *Admin) serveHistory(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("span")
	view, ok := a.history.view(name)
	if !ok {
		writeJSON(w, http.StatusBadRequest, map[string]string{
			"error": fmt.Sprintf("span=%.20q: want %s", name, strings.Join(spanNames(), ", "))})
		return
	}
	writeJSON(w, http.StatusOK, view)
}

func spanNames() []string {
	names := make([]string, len(spans))
	for i, s := range spans {
		names[i] = s.name
	}
	return names
}
