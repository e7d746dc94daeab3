package replay

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-go/weir/cmd/weir/internal/config"
)

// A judge tells which requests of a log a rule means, and whose they are.
type judge struct {
	rule   *config.Rule
	client config.ClientIP
}

// blind says why a rule cannot be judged from a log; "" if it can. An access log holds the client,
// method, path, referer and user agent, and nothing else about a request: to take for granted
// what it does not hold would be a guess.
func blind(r *config.Rule, host string) string {
	if host == "" && len(r.Match.Hosts) > 0 {
		return "the log does not say for which host a request was: name it by --host"
	}
	if host == "" && r.Key.Uses(config.SourceHost) {
		return "its key has the host, which the log does not: name it by --host"
	}
	for _, h := range r.Match.Headers {
		if !slices.Contains(loggedHeaders, h.Name) {
			return fmt.Sprintf("the log does not hold the header %s that it matches", h.Name)
		}
	}
	for _, part := range r.Key {
		for _, s := range part {
			if s.Kind == config.SourceCookie || s.Kind == config.SourceHeader && !slices.Contains(loggedHeaders, s.Name) {
				return fmt.Sprintf("the log does not hold the %s %s of its key", s.Kind, s.Name)
			}
		}
	}
	return ""
}

// notes says what of a rule is judged otherwise than a server would, because the log does not hold it.
func notes(r *config.Rule) (all []string) {
	if r.Tiers != nil && !slices.Contains(loggedHeaders, r.Tiers.Header) {
		all = append(all, fmt.Sprintf("everybody is in the rule's own tier: the log does not hold %s", r.Tiers.Header))
	}
	if r.Cost.Header != "" && !slices.Contains(loggedHeaders, r.Cost.Header) {
		all = append(all, fmt.Sprintf("every request costs %d: the log does not hold %s", r.Cost.Default, r.Cost.Header))
	}
	return all
}

// key returns who a request belongs to as a text that differs for different keys, and the one to
// show; false if the rule does not count it.
func (j *judge) key(r *http.Request, host string) (key, name string, ok bool) {
	var k, n strings.Builder
	for i, part := range j.rule.Key {
		value, ok := j.part(part, r, host)
		if !ok {
			return "", "", false
		}
		if i > 0 {
			n.WriteByte(' ')
		}
		n.WriteString(printable(value))
		k.WriteString(strconv.Itoa(len(value)))
		k.WriteByte(':')
		k.WriteString(value)
	}
	return k.String(), n.String(), true
}

// printable is a text that can be shown: what steers a terminal is escaped, and what is too long
// for a line is cut.
func printable(s string) string {
	const longest = 80
	if len(s) > longest {
		s = s[:longest] + "..."
	}
	if quoted := strconv.QuoteToGraphic(s); quoted[1:len(quoted)-1] != s {
		return quoted
	}
	return s
}

// part returns the first of the sources that the request has.
func (j *judge) part(part config.KeyPart, r *http.Request, host string) (string, bool) {
	for _, s := range part {
		switch s.Kind {
		case config.SourceIP:
			return clientName(host, j.client.IPv4Prefix, j.client.IPv6Prefix), true
		case config.SourceHeader:
			if value := r.Header.Get(s.Name); value != "" {
				return value, true
			}
		case config.SourcePath:
			return config.CleanPath(r.URL.Path), true
		case config.SourceMethod:
			return method(r.Method), true
		case config.SourceHost:
			return config.BareHost(r.Host), true
		case config.SourceGlobal:
			return "everybody", true
		}
	}
	return "", false
}

// method takes all methods that net/http has no name for as one, as the server does, so that
// made-up ones have one bucket together.
func method(of string) string {
	switch of {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return of
	}
	return "other"
}

// tier is that of the request.
func (j *judge) tier(r *http.Request) int {
	if t := j.rule.Tiers; t != nil {
		return t.Of(r.Header.Get(t.Header))
	}
	return 0
}

// cost is how many tokens the request takes.
func (j *judge) cost(r *http.Request) uint64 {
	c := j.rule.Cost
	if c.Header == "" {
		return c.Default
	}
	n, err := strconv.ParseUint(r.Header.Get(c.Header), 10, 64)
	if err != nil || n == 0 {
		return c.Default
	}
	return min(n, c.Max)
}
