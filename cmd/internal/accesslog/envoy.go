package accesslog

import (
	"bytes"
	"fmt"
)

// Envoy's text logs have quotes that are not escaped, so a client could forge fields. To prevent this, a line is split
// at its quotes, and refused if their number is wrong.

// parseEnvoy parses a line of Envoy's default format:
//
//	[START_TIME] "METHOD PATH PROTOCOL" RESPONSE_CODE RESPONSE_FLAGS BYTES_RECEIVED BYTES_SENT DURATION
//	UPSTREAM_SERVICE_TIME "X-FORWARDED-FOR" "USER-AGENT" "X-REQUEST-ID" "AUTHORITY" "UPSTREAM_HOST"
//
// The client is only in X-Forwarded-For: see lastForwarded.
//
// https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage#default-format-string
func (p *parser) parseEnvoy(line []byte) error {
	var date, request, outcome, forwarded, agent, id, authority []byte
	err := cutAtQuotes(line, &date, &request, &outcome, &forwarded, nil, &agent, nil, &id, nil, &authority, nil,
		nil, nil)
	if err != nil {
		return err
	}
	var status, received, size, duration []byte
	rest, err := cutFields(bytes.Trim(outcome, " "), &status, nil, &received, &size, &duration, nil)
	if err != nil || len(rest) > 0 || !isNumber(received) || !isNumber(duration) {
		return fmt.Errorf("want code, flags, two sizes and two durations after the request, got %s", quote(outcome))
	}
	if err := p.parseEnvoyStart(date, status, size); err != nil {
		return err
	}
	if err := p.entry.setClient(lastForwarded(forwarded)); err != nil {
		return fmt.Errorf("%w: in this format, only X-Forwarded-For has it", err)
	}
	p.entry.setRequest(request)
	p.setEnvoyHeaders(forwarded, agent, id, authority)
	return nil
}

// parseIstio parses a line of Istio's default format, which extends Envoy's:
//
//	[START_TIME] "METHOD PATH PROTOCOL" RESPONSE_CODE RESPONSE_FLAGS RESPONSE_CODE_DETAILS
//	CONNECTION_TERMINATION_DETAILS "UPSTREAM_TRANSPORT_FAILURE_REASON" BYTES_RECEIVED BYTES_SENT DURATION
//	UPSTREAM_SERVICE_TIME "X-FORWARDED-FOR" "USER-AGENT" "X-REQUEST-ID" "AUTHORITY" "UPSTREAM_HOST" UPSTREAM_CLUSTER
//	UPSTREAM_LOCAL_ADDRESS DOWNSTREAM_LOCAL_ADDRESS DOWNSTREAM_REMOTE_ADDRESS REQUESTED_SERVER_NAME ROUTE_NAME
//
// https://istio.io/latest/docs/tasks/observability/logs/access-log/#default-access-log-format
func (p *parser) parseIstio(line []byte) error {
	var date, request, outcome, sizes, forwarded, agent, id, authority, tail []byte
	err := cutAtQuotes(line, &date, &request, &outcome, nil, &sizes, &forwarded, nil, &agent, nil, &id, nil, &authority,
		nil, nil, &tail)
	if err != nil {
		return err
	}
	status, _, _ := bytes.Cut(bytes.TrimLeft(outcome, " "), space)
	var received, size, client []byte
	if _, err := cutFields(bytes.Trim(sizes, " "), &received, &size, nil, nil); err != nil || !isNumber(received) {
		return fmt.Errorf("want two sizes and two durations after the failure reason, got %s", quote(sizes))
	}
	if _, err := cutFields(bytes.Trim(tail, " "), nil, nil, nil, &client, nil, nil); err != nil {
		return fmt.Errorf("want a cluster, three addresses, a server name and a route at the end, got %s", quote(tail))
	}
	if err := p.parseEnvoyStart(date, status, size); err != nil {
		return err
	}
	if err := p.entry.setClient(client); err != nil {
		return err
	}
	p.entry.setRequest(request)
	p.setEnvoyHeaders(forwarded, agent, id, authority)
	return nil
}

// cutAtQuotes splits a line at its quotes, and sets the targets to the parts in order. A nil target skips a part. One
// space must separate two quoted fields.
func cutAtQuotes(line []byte, targets ...*[]byte) error {
	if n, want := bytes.Count(line, quoteMark), len(targets)-1; n != want {
		return fmt.Errorf("the line has %d quotes, not %d: Envoy does not escape them, "+
			"so its fields cannot be identified", n, want)
	}
	for i, target := range targets {
		var part []byte
		part, line, _ = bytes.Cut(line, quoteMark)
		if isSeparator := i > 0 && i%2 == 0; isSeparator && len(line) > 0 && (len(part) == 0 || part[0] != ' ') {
			return fmt.Errorf("want a space between two fields, got %s", quote(part))
		}
		if target != nil {
			*target = part
		}
	}
	return nil
}

var quoteMark = []byte(`"`)

func (p *parser) parseEnvoyStart(date, status, size []byte) (err error) {
	if !bytes.HasPrefix(date, []byte("[")) || !bytes.HasSuffix(date, []byte("] ")) {
		return fmt.Errorf("want a date in brackets before the request, got %s", quote(date))
	}
	if p.entry.Time, err = parseISO(date[1 : len(date)-2]); err != nil {
		return err
	}
	return p.entry.setOutcome(status, size)
}

// setEnvoyHeaders sets the header fields of the request that both formats have.
func (p *parser) setEnvoyHeaders(forwarded, agent, id, authority []byte) {
	p.setHost(authority)
	p.setHeader("X-Forwarded-For", forwarded)
	p.setHeader("User-Agent", agent)
	p.setHeader("X-Request-Id", id)
}

// lastForwarded returns the last address of X-Forwarded-For. It is the only address that a client cannot forge, because
// a proxy has appended it. This proxy is the Envoy that wrote the log or, if this Envoy trusts a proxy in front of it,
// that proxy.
//
// https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_conn_man/headers#x-forwarded-for
func lastForwarded(list []byte) []byte {
	return bytes.TrimSpace(list[bytes.LastIndexByte(list, ',')+1:])
}
