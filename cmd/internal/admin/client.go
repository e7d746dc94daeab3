package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// A clientRequest names a client by its address. A client among the most refused clients can also be named by its hash.
type clientRequest struct {
	Address string `json:"address"`
	Hash    string `json:"hash"`
}

type clientView struct {
	Keys []keyView `json:"keys"`
}

// serveClient answers what a client has left under some rules. If the request has an address, they are the rules whose
// key is the address. If it has a hash, they are the rules that refused the client in the last minute.
func (a *Admin) serveClient(w http.ResponseWriter, r *http.Request) {
	var request clientRequest
	if status, err := readForm(w, r, &request); err != nil {
		writeError(w, status, err)
		return
	}
	rules, buckets, err := a.bucketsOf(request)
	if err != nil {
		writeError(w, http.StatusUnprocessableEntity, err)
		return
	}
	v := clientView{Keys: make([]keyView, len(rules))}
	for i, rule := range rules {
		if v.Keys[i], err = a.peek(r.Context(), rule, buckets[i]); err != nil {
			writeError(w, http.StatusBadGateway, fmt.Errorf("rule %q: %s", rule.Name, strings.TrimPrefix(err.Error(), "redislimit: ")))
			return
		}
	}
	writeJSON(w, http.StatusOK, v)
}

func (a *Admin) peek(ctx context.Context, rule Rule, b Bucket) (keyView, error) {
	d, err := rule.Buckets.Peek(ctx, b)
	return a.keyView(rule, b, isUsed(d), d), err
}

// bucketsOf returns the rules of which the client is a key, and its buckets.
func (a *Admin) bucketsOf(request clientRequest) (rules []Rule, buckets []Bucket, err error) {
	switch {
	case request.Hash == "":
		if err := checkAddress(request.Address); err != nil {
			return nil, nil, err
		}
	case request.Address != "":
		return nil, nil, errors.New("an address and a hash: want one of them")
	}
	for _, rule := range a.rules() {
		var b Bucket
		switch {
		case rule.Buckets == nil:
			continue
		case request.Hash != "":
			if hash, ok := parseHash(request.Hash); !ok || !a.refusals.contains(rule.Name, hash) {
				continue
			}
			b, err = a.findRefused(rule, request.Hash)
		case !slices.Equal(rule.Parts, []string{"ip"}):
			continue
		default:
			b, err = rule.Buckets.Bucket([]string{request.Address})
		}
		if err != nil {
			return nil, nil, err
		}
		rules, buckets = append(rules, rule), append(buckets, b)
	}
	if len(rules) == 0 && request.Hash != "" {
		return nil, nil, fmt.Errorf("key %s is not watched: it was rarely or never refused in the last minute", request.Hash)
	}
	if len(rules) == 0 {
		return nil, nil, errors.New("no rule has the client's address as its key")
	}
	return rules, buckets, nil
}
