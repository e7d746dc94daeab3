package accesslog

import (
	"bytes"
	"fmt"
	"strconv"
)

// parseALB parses a line of an AWS Application Load Balancer:
//
//	type time elb client:port target:port request_processing_time target_processing_time response_processing_time
//	elb_status_code target_status_code received_bytes sent_bytes "request" "user_agent" ssl_cipher ssl_protocol
//	target_group_arn "trace_id" "domain_name" "chosen_cert_arn" matched_rule_priority request_creation_time ...
//
// The request line has a complete URL. Lines from before 2018 end after "user_agent". Their time is the time of the
// answer.
//
// https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html
func (p *parser) parseALB(line []byte) error {
	var kind, answerTime, client, status, size, request, agent []byte
	rest, err := cutFields(line, &kind, &answerTime, nil, &client, nil, nil, nil, nil, &status, nil, nil, &size,
		&request, &agent)
	if err != nil {
		return err
	}
	switch string(kind) {
	case "http", "https", "h2", "grpcs", "ws", "wss":
	default:
		return fmt.Errorf("the type %s is not one of a load balancer: http, https, h2, grpcs, ws, wss", quote(kind))
	}
	e := &p.entry
	if err := e.setClient(client); err != nil {
		return err
	}
	if e.Time, err = parseISO(answerTime); err != nil {
		return err
	}
	if err := e.setOutcome(status, size); err != nil {
		return err
	}
	e.setRequest(p.unescape(request))
	if !p.setURL() {
		e.Method, e.Target, e.Proto = nil, nil, nil // such as "- http://example.com:80- -", if there was no request
	}
	p.setHeader("User-Agent", p.unescape(agent))
	if len(rest) == 0 {
		return nil
	}
	var requestTime []byte
	if _, err := cutFields(rest, nil, nil, nil, nil, nil, nil, nil, &requestTime); err != nil {
		return err
	}
	if !isAbsent(requestTime) {
		e.Time, err = parseISO(requestTime)
	}
	return err
}

// parseELB parses a line of an AWS Classic Load Balancer. Its time is the time of the answer.
//
//	time elb client:port backend:port request_processing_time backend_processing_time response_processing_time
//	elb_status_code backend_status_code received_bytes sent_bytes "request" "user_agent" ssl_cipher ssl_protocol
//
// https://docs.aws.amazon.com/elasticloadbalancing/latest/classic/access-log-collection.html
func (p *parser) parseELB(line []byte) error {
	var answerTime, client, requestDuration, status, size, request, agent []byte
	_, err := cutFields(line, &answerTime, nil, &client, nil, &requestDuration, nil, nil, &status, nil, nil, &size, &request, &agent)
	if err != nil {
		return err
	}
	e := &p.entry
	if e.Time, err = parseISO(answerTime); err != nil {
		return err
	}
	if err := e.setClient(client); err != nil {
		return err
	}
	if _, err := strconv.ParseFloat(string(requestDuration), 64); err != nil {
		return fmt.Errorf("the request_processing_time %s is not a number", quote(requestDuration))
	}
	if err := e.setOutcome(status, size); err != nil {
		return err
	}
	e.setRequest(p.unescape(request))
	if !p.setURL() {
		e.Method, e.Target, e.Proto = nil, nil, nil // "- - - " of a connection without HTTP
	}
	p.setHeader("User-Agent", p.unescape(agent))
	return nil
}

// setURL cuts the host out of a target that is a URL with scheme and path. For any other target, it returns false.
func (p *parser) setURL() bool {
	_, rest, ok := bytes.Cut(p.entry.Target, []byte("://"))
	path := bytes.IndexByte(rest, '/')
	if !ok || path <= 0 {
		return false
	}
	p.setHost(rest[:path])
	p.entry.Target = rest[path:]
	return true
}
