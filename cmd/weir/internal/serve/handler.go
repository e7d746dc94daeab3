package serve

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-go/weir/engine"
)

// admitted serves a request that was let through. Unlike an http.Handler it is
// told who was charged and what is left, without a context made per request.
type admitted func(w http.ResponseWriter, r *http.Request, who client, d engine.Decision)

// gate charges every request to its client and lets it through to next or not.
type gate struct {
	limiter *engine.Limiter
	source  KeySource
	counts  *counters
	log     *slog.Logger
	next    admitted
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	who, err := g.source.client(r)
	if err != nil {
		// Not reachable over TCP. Whom to charge is unknown, so nobody is let through.
		g.log.Error("cannot tell who is asking", "err", err)
		writeError(w, http.StatusInternalServerError, errorBody{Error: "Cannot tell who is asking"})
		return
	}
	d := g.limiter.TakeKey(who.key(g.limiter), 1)
	if !d.Allowed {
		g.counts.refused.Add(1)
		refuse(w, d)
		return
	}
	g.counts.allowed.Add(1)
	g.next(w, r, who, d)
}

// refuse answers 429 and says when to come back.
func refuse(w http.ResponseWriter, d engine.Decision) {
	seconds := wholeSeconds(d.RetryAfter)
	w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	writeError(w, http.StatusTooManyRequests, errorBody{Error: "Too many requests", RetryAfter: seconds})
}

// wholeSeconds rounds up, because Retry-After has no fractions and a client that
// comes back early is refused again; and to at least 1, because 0 would invite
// it to come back at once.
func wholeSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return max(seconds, 1)
}

// errorBody is the JSON of every error answer of ours.
type errorBody struct {
	Error      string `json:"error"`
	RetryAfter int64  `json:"retryAfter,omitempty"` // seconds
}

func writeError(w http.ResponseWriter, status int, body errorBody) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An error here means that the client is gone; there is nobody to tell.
	_ = json.NewEncoder(w).Encode(body)
}
