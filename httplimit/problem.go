package httplimit

import (
	"net/http"
	"strconv"

	"github.com/weir-go/weir/limits"
)

// A BodyFormat is the form of the body of a refusal.
type BodyFormat uint8

const (
	// ProblemJSON is application/problem+json (RFC 9457), with the problem types of the IETF draft. For 429, the type
	// is quota-exceeded, and violated-policies has the refusing limits. For 503, the type is
	// temporary-reduced-capacity.
	ProblemJSON BodyFormat = iota
	// PlainJSON is {"error":"Too many requests","retryAfter":1}. retryAfter is a number of seconds. It is null if the
	// request can never pass, or if the time is not known.
	PlainJSON
)

const problemTypes = "https://iana.org/assignments/http-problem-types#"

// Refuse answers a refused request with headers, status and body. It does nothing for an allowed request.
//
// A gRPC call ([IsGRPC]) gets HTTP status 200 and the gRPC status RESOURCE_EXHAUSTED with a RetryInfo. If the status
// would be 503, the gRPC status is UNAVAILABLE.
func (res *Result) Refuse(w http.ResponseWriter, r *http.Request) {
	if res.Allowed() {
		return
	}
	res.WriteHeaders(w.Header())
	if res.m.respond != nil {
		res.m.respond(w, r, *res)
		return
	}
	res.Answer(w, r, res.Status())
}

// Answer writes the status and body of a refusal. It does what [Result.Refuse] does without [RefuseWith], but with the
// given status. A RefuseWith function can call Answer for requests that need no special answer. For a gRPC call, Answer
// ignores status.
func (res *Result) Answer(w http.ResponseWriter, r *http.Request, status int) {
	if res.Allowed() {
		return
	}
	if IsGRPC(r) {
		res.refuseGRPC(w)
		return
	}
	contentType, body := "application/problem+json", res.problem
	if res.m.body == PlainJSON {
		contentType, body = "application/json", res.plain
	}
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	w.Write(append(body(make([]byte, 0, 512), status), '\n')) // an error means that the client has gone
}

// problem appends the body of ProblemJSON. Names are quoted as strings of RFC 9651, which are also valid in JSON.
func (res *Result) problem(b []byte, status int) []byte {
	if res.Verdict() == limits.Unavailable {
		b = append(b, `{"type":"`+problemTypes+`temporary-reduced-capacity",`+
			`"title":"Request cannot be satisfied due to temporary server capacity constraints","status":`...)
		return append(strconv.AppendInt(b, int64(status), 10), `,"detail":"The rate limiter's store does not answer."}`...)
	}
	b = append(b, `{"type":"`+problemTypes+`quota-exceeded",`+
		`"title":"Request cannot be satisfied as assigned quota has been exceeded","status":`...)
	b = append(strconv.AppendInt(b, int64(status), 10), `,"detail":"`...)
	if res.neverPasses() {
		c, _ := res.Tightest()
		b = append(b, `This request can never be admitted: it costs `...)
		b = strconv.AppendUint(b, c.N, 10)
		b = append(b, ` and the limit is `...)
		b = strconv.AppendUint(b, c.Decision.Limit, 10)
	} else if res.retrySeconds() == 0 {
		b = append(b, `Too many requests are in flight: try again when one of them is over`...)
	} else {
		b = append(b, `Try again in `...)
		b = strconv.AppendInt(b, res.retrySeconds(), 10)
		b = append(b, ` s`...)
	}
	b = append(b, `.","violated-policies":[`...)
	for i, first := 0, true; i < res.Len(); i++ {
		if c := res.Check(i); c.Outcome == limits.Refused {
			if !first {
				b = append(b, ',')
			}
			b, first = append(b, res.texts(c).quoted...), false
		}
	}
	return append(b, "]}"...)
}

// plain appends the body of PlainJSON.
func (res *Result) plain(b []byte, _ int) []byte {
	if res.Verdict() == limits.Unavailable {
		return append(b, `{"error":"Service unavailable","retryAfter":null}`...)
	}
	b = append(b, `{"error":"Too many requests","retryAfter":`...)
	if res.neverPasses() || res.retrySeconds() == 0 {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, res.retrySeconds(), 10)
	}
	return append(b, '}')
}
