package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/weir-go/weir/httplimit/reading"
)

// decide handles /decide. There, other proxies ask whether a request may pass. It answers 200, or 429 with the headers
// and the body for the client.
//
// nginx accepts only 401 and 403 as refusals. So a proxy may ask for another status with ?status=403. The field
// Weir-Status then has the original status.
func (s *Server) decide(w http.ResponseWriter, r *http.Request) {
	g := s.enter()
	if g == nil {
		panic(http.ErrAbortHandler)
	}
	defer g.leave()
	body := g.file.Response.Body
	if r.URL.Path != "/decide" {
		fail(w, r, body, http.StatusNotFound, "Ask at /decide")
		return
	}
	status, err := refusalStatus(r.URL)
	if err != nil {
		fail(w, r, body, http.StatusBadRequest, err.Error())
		return
	}
	clientRequest, err := describedRequest(r, g.fields.host)
	if err != nil {
		s.config.Log.Warn("a proxy's question cannot be decided", "peer", r.RemoteAddr, "err", err)
		fail(w, r, body, http.StatusBadRequest, err.Error())
		return
	}
	s.traffic.requests.Add(1)
	if err := readTarget(clientRequest); err != nil {
		s.traffic.undecided.Add(1)
		fail(&otherStatus{w, status}, r, body, http.StatusBadRequest, "The request is malformed: "+err.Error())
		return
	}
	if err := g.fields.check(clientRequest); err != nil {
		s.traffic.undecided.Add(1)
		fail(&otherStatus{w, status}, r, body, http.StatusBadRequest, "The request is ambiguous: "+err.Error())
		return
	}
	clientRequest, ok := s.applyActions(g, &otherStatus{w, status}, clientRequest)
	if !ok {
		return
	}
	decision := g.limits.Decide(clientRequest)
	if !decision.Allowed() {
		decision.Refuse(&otherStatus{w, status}, clientRequest)
		return
	}
	s.traffic.allowed.Add(1)
	decision.WriteHeaders(w.Header())
	w.WriteHeader(http.StatusOK)
}

// refusalStatus returns the status that the proxy wants for refusals. It is 0 if the proxy names none.
func refusalStatus(u *url.URL) (int, error) {
	text := u.Query().Get("status")
	if text == "" {
		return 0, nil
	}
	status, err := strconv.Atoi(text)
	if err != nil || status < 400 || status > 499 {
		return 0, fmt.Errorf("status=%s: want the status of refusals, 400 to 499", strconv.Quote(text))
	}
	return status, nil
}

// describedRequest returns the request about which a proxy asks. Traefik and Caddy describe it with X-Forwarded-Uri and
// X-Forwarded-Method, and nginx often with X-Original-URI and X-Original-Method. A proxy may pass on the other pair of
// fields as the client sent it. So if the pairs differ, describedRequest returns an error. Otherwise a client could
// choose the request about which the rules decide.
func describedRequest(r *http.Request, needsHost bool) (*http.Request, error) {
	target, err := singleValue(r, "X-Forwarded-Uri", "X-Original-Uri")
	if err != nil {
		return nil, err
	}
	if target[0] != '/' {
		return nil, fmt.Errorf("X-Forwarded-Uri %q: want the path and query of the request", target)
	}
	method, err := singleValue(r, "X-Forwarded-Method", "X-Original-Method")
	if err != nil {
		return nil, err
	}
	if !httpguts.ValidHeaderFieldName(method) { // a method may have the characters of a header's name
		return nil, fmt.Errorf("X-Forwarded-Method %q: want a method, such as GET", method)
	}
	host, err := describedHost(r, needsHost)
	if err != nil {
		return nil, err
	}
	clientRequest := r.Clone(context.WithValue(r.Context(), reading.ParsedKey{}, new(reading.Parsed)))
	clientRequest.Method, clientRequest.RequestURI, clientRequest.Host = method, target, host
	return clientRequest, nil
}

// readTarget puts the target of a client's request into its URL. An error is the client's fault, not the proxy's. It
// refuses a "#", because nginx chooses a location by the text before the "#" but passes on the complete target.
func readTarget(clientRequest *http.Request) (err error) {
	if clientRequest.URL, err = url.ParseRequestURI(clientRequest.RequestURI); err != nil {
		return fmt.Errorf("the target %q is not valid", clientRequest.RequestURI)
	}
	return checkTarget(clientRequest)
}

// describedHost returns X-Forwarded-Host. If this field is missing, it returns "", or an error if rules need the host.
func describedHost(r *http.Request, isRequired bool) (string, error) {
	hosts := r.Header.Values("X-Forwarded-Host")
	switch {
	case len(hosts) == 0 && isRequired:
		return "", errors.New("no X-Forwarded-Host, and a rule is about hosts: configure the proxy to set it")
	case len(hosts) == 0:
		return "", nil
	case len(hosts) > 1 || strings.Contains(hosts[0], ","):
		return "", fmt.Errorf("X-Forwarded-Host %q: want one host: configure the proxy to replace what a client sends", hosts)
	}
	return hosts[0], nil
}

// singleValue returns the value of one of two headers. If a request has several values of these headers, they must be
// equal.
func singleValue(r *http.Request, name, other string) (string, error) {
	values := append(r.Header.Values(name), r.Header.Values(other)...)
	for _, v := range values {
		if v != values[0] {
			return "", fmt.Errorf("%s and %s differ or occur twice: configure the proxy to set one and clear the other",
				name, other)
		}
	}
	if len(values) == 0 || values[0] == "" {
		return "", fmt.Errorf("no %s: configure the proxy to name the request that it asks about", name)
	}
	return values[0], nil
}

// An otherStatus replaces the status of a refusal.
type otherStatus struct {
	http.ResponseWriter
	status int // 0 means that it is not replaced
}

func (w *otherStatus) WriteHeader(status int) {
	// This also replaces the status 503, with which a limit with on_loss: closed refuses if its store is lost.
	// Otherwise the proxy would conclude that weir is down.
	if w.status != 0 {
		w.Header().Set("Weir-Status", strconv.Itoa(status))
		status = w.status
	}
	w.ResponseWriter.WriteHeader(status)
}
