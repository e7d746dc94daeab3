package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"strings"

	"github.com/weir-go/weir/engine"
)

const maxForm = 64 << 10

// A keyRequest names a key by its parts. A key among the most refused keys can also be named by its hash.
type keyRequest struct {
	Rule  string   `json:"rule"`
	Parts []string `json:"parts"`
	Hash  string   `json:"hash"`
}

// A keyView is the state of a key under its rule, after a reset if there was one.
type keyView struct {
	Rule       string `json:"rule"`
	Hash       string `json:"hash,omitempty"` // the hash that the list of refused keys shows
	Recorded   bool   `json:"recorded"`       // whether the key had used any of its limit, before a reset
	Limit      uint64 `json:"limit"`
	Remaining  uint64 `json:"remaining"`
	RetryAfter string `json:"retry_after"`
	ResetAfter string `json:"reset_after"`
	Allowed    bool   `json:"allowed"` // whether one token could be taken now
}

func (a *Admin) servePeek(w http.ResponseWriter, r *http.Request) {
	a.withKey(w, r, func(rule Rule, b Bucket) (recorded bool, d engine.Decision, err error) {
		d, err = rule.Buckets.Peek(r.Context(), b)
		return isUsed(d), d, err
	})
}

func (a *Admin) serveReset(w http.ResponseWriter, r *http.Request) {
	if a.config.NoReset {
		writeError(w, http.StatusForbidden, errors.New("keys cannot be reset here: the program was started without permission for it"))
		return
	}
	a.withKey(w, r, func(rule Rule, b Bucket) (recorded bool, d engine.Decision, err error) {
		buckets := rule.Buckets
		before, peekErr := buckets.Peek(r.Context(), b)
		if err := buckets.Reset(r.Context(), b); err != nil {
			return false, d, err
		}
		a.log().Info("admin: a key was reset", "rule", rule.Name, "key", a.keyInLog(rule, b), "who", callerOf(r).name,
			"peer", r.RemoteAddr)
		d, err = buckets.Peek(r.Context(), b)
		// If the store has a value of another type under the name of a key, the key cannot be read. It then counts as
		// recorded.
		return peekErr != nil || isUsed(before), d, err
	})
}

// keyInLog returns the hash that the list of refused keys shows, or "" if keys are off.
func (a *Admin) keyInLog(rule Rule, b Bucket) string {
	if a.config.Keys == KeysOff {
		return ""
	}
	return hashText(a.refusals.hash(a.refusals.identity(rule, b)))
}

// isUsed reports whether a key has used any of its limit. A long idle key looks unused.
func isUsed(d engine.Decision) bool { return d.Remaining < d.Limit || d.ResetAfter > 0 }

// withKey finds the key of a request, calls the function do with it, and answers with the key's state. It answers 502
// if the store fails.
func (a *Admin) withKey(w http.ResponseWriter, r *http.Request,
	do func(Rule, Bucket) (recorded bool, d engine.Decision, err error)) {
	var request keyRequest
	if status, err := readForm(w, r, &request); err != nil {
		writeError(w, status, err)
		return
	}
	rule, b, err := a.bucket(request)
	if err != nil {
		writeError(w, http.StatusUnprocessableEntity, err)
		return
	}
	recorded, d, err := do(rule, b)
	if err != nil {
		writeError(w, http.StatusBadGateway, errors.New(strings.TrimPrefix(err.Error(), "redislimit: ")))
		return
	}
	writeJSON(w, http.StatusOK, a.keyView(rule, b, recorded, d))
}

func (a *Admin) keyView(rule Rule, b Bucket, recorded bool, d engine.Decision) keyView {
	v := keyView{
		Rule: rule.Name, Recorded: recorded, Limit: d.Limit, Remaining: d.Remaining,
		RetryAfter: inWords(d.RetryAfter), ResetAfter: inWords(d.ResetAfter), Allowed: d.Allowed,
	}
	if rule.isInFlight() {
		v.describeInFlight(d)
	}
	v.Hash = a.keyInLog(rule, b)
	return v
}

func (r *Rule) isInFlight() bool {
	if r.Stored != nil {
		return r.Stored.Source().Policy().Algorithm() == engine.AlgorithmConcurrency
	}
	return r.Limiter != nil && r.Limiter.Algorithm() == engine.AlgorithmConcurrency
}

// describeInFlight completes the view of a key whose limit is for requests in flight. There is no time to wait, because
// no one knows when the requests end.
func (v *keyView) describeInFlight(d engine.Decision) {
	if d.RetryAfter > 0 && d.RetryAfter != engine.Never {
		v.RetryAfter = "when one of them is over"
	}
	if d.ResetAfter > 0 {
		v.ResetAfter = "when all of them are over"
	}
}

func writeError(w http.ResponseWriter, status int, err error) {
	writeJSON(w, status, map[string]string{"error": err.Error()})
}

func readForm(w http.ResponseWriter, r *http.Request, dest any) (status int, err error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return http.StatusUnsupportedMediaType,
			fmt.Errorf("the content type is %q: want application/json", r.Header.Get("Content-Type"))
	}
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxForm))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(dest)
	var tooLong *http.MaxBytesError
	if err == nil {
		switch _, err = decoder.Token(); {
		case err == io.EOF:
			return http.StatusOK, nil
		case !errors.As(err, &tooLong):
			err = errors.New("text after its JSON")
		}
	}
	if errors.As(err, &tooLong) {
		return http.StatusRequestEntityTooLarge, fmt.Errorf("more than %d bytes", maxForm)
	}
	return http.StatusBadRequest, fmt.Errorf("the body is not the JSON of this request: %w", err)
}

func (a *Admin) bucket(request keyRequest) (Rule, Bucket, error) {
	rule, found := Rule{}, false
	for _, r := range a.rules() {
		if r.Name == request.Rule {
			rule, found = r, true
		}
	}
	switch {
	case !found:
		return rule, Bucket{}, fmt.Errorf("there is no rule %q", request.Rule)
	case rule.Buckets == nil:
		return rule, Bucket{}, fmt.Errorf("the keys of rule %q cannot be looked at from here", rule.Name)
	case request.Hash != "":
		b, err := a.findRefused(rule, request.Hash)
		return rule, b, err
	case len(request.Parts) != len(rule.Parts):
		return rule, Bucket{}, fmt.Errorf("rule %q has keys of %d parts: %d were given", rule.Name, len(rule.Parts),
			len(request.Parts))
	}
	for i, label := range rule.Parts {
		if label == "ip" {
			if err := checkAddress(request.Parts[i]); err != nil {
				return rule, Bucket{}, err
			}
		}
	}
	b, err := rule.Buckets.Bucket(request.Parts)
	return rule, b, err
}

// findRefused finds a recently refused key by its hash. If keys are off, it finds none.
func (a *Admin) findRefused(rule Rule, text string) (Bucket, error) {
	hash, ok := parseHash(text)
	if !ok {
		return Bucket{}, fmt.Errorf("the hash is %q: want 16 hexadecimal digits", text)
	}
	e, found := a.refusals.find(rule.Name, hash)
	switch {
	case !found:
		return Bucket{}, fmt.Errorf("key %s is not watched: it was rarely or never refused in the last minute", text)
	case (rule.Stored != nil) != (e.hash != 0):
		return Bucket{}, fmt.Errorf("key %s was refused when rule %q was kept elsewhere", text, rule.Name)
	case rule.Stored == nil:
		return Bucket{Key: e.limit.key, Limit: e.limit.policy}, nil
	case e.text == "":
		return Bucket{}, fmt.Errorf("the text of key %s was not kept, because too many other keys were refused: write it below", text)
	case a.refusals.storedIdentity(rule.Name, e.text) != e.identity:
		return Bucket{}, fmt.Errorf("key %s is longer than the %d bytes that are kept: write it below", text, maxText)
	}
	return Bucket{Text: e.text, Limit: e.limit.policy}, nil
}

// checkAddress refuses a text that is not an address: its key would belong to another client or to none.
func checkAddress(text string) error {
	if _, err := netip.ParseAddr(text); err != nil {
		return fmt.Errorf("%q is not an IP address: write it like 192.0.2.1 or 2001:db8::1", text)
	}
	return nil
}
