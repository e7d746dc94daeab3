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

// embedded has the page and the files that it loads.
//
//go:embed page
var embedded embed.FS

type endpoint struct {
	pattern string // of http.ServeMux
	needs   role
	serve   http.HandlerFunc
}

// endpoints returns all endpoints behind guard, which checks the Host header.
func (a *Admin) endpoints(registry *prometheus.Registry) []endpoint {
	all := []endpoint{
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
		all = append(all, endpoint{"GET /actions.json", viewer, a.serveActions},
			endpoint{"POST /actions", operator, a.serveAct},
			endpoint{"POST /actions/end", operator, a.serveEnd})
	}
	if a.config.Pprof { // profiles show the command line and the work of goroutines
		all = append(all, endpoint{"GET /debug/pprof/", operator, pprof.Index},
			endpoint{"GET /debug/pprof/cmdline", operator, pprof.Cmdline},
			endpoint{"GET /debug/pprof/profile", operator, pprof.Profile},
			endpoint{"GET /debug/pprof/symbol", operator, pprof.Symbol},
			endpoint{"POST /debug/pprof/symbol", operator, pprof.Symbol},
			endpoint{"GET /debug/pprof/trace", operator, pprof.Trace})
	}
	return all
}

// routes returns the handler of all paths. To /healthz and /readyz it answers one word, for any host and without a
// token. Any other request needs a host that guard allows, and a caller with access.
func (a *Admin) routes(registry *prometheus.Registry) http.Handler {
	open := http.NewServeMux()
	open.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	open.HandleFunc("GET /readyz", a.serveReady)
	own := http.NewServeMux()
	for _, e := range a.endpoints(registry) {
		own.Handle(e.pattern, a.allow(e))
	}
	open.Handle("/", guard(own, a.config.Hosts))
	return open
}

type callerView struct {
	Who       string `json:"who"`
	Sure      bool   `json:"sure"`       // the field who is the name of the token
	MayChange bool   `json:"may_change"` // false if the caller may only read
}

func (a *Admin) serveCaller(w http.ResponseWriter, r *http.Request) {
	c := callerOf(r)
	answer(w, http.StatusOK, callerView{c.who, c.sure, c.role >= operator})
}

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

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the only possible error is that the client has gone
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
