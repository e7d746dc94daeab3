package accesslog

import "errors"

// parseCaddy parses a line of Caddy's access log in JSON. Only lines with the message "handled request" are requests.
// Their time is in seconds since 1970, or a date with a zone. The client is "client_ip", or "remote_ip" before Caddy
// 2.7.
//
// https://caddyserver.com/docs/logging#structured-logs
// https://caddyserver.com/docs/caddyfile/directives/log
func (p *parser) parseCaddy(line []byte) error {
	if err := p.parseJSON(line); err != nil {
		return err
	}
	var raw rawFields
	var remote, uri []byte
	hasRequest := false
	for _, m := range p.members {
		switch m.parent {
		case topObject:
			switch string(m.name) {
			case "ts":
				raw.time = m.value
			case "status":
				raw.status = m.value
			case "size":
				raw.size = m.value
			}
		case requestObject:
			hasRequest = true
			switch string(m.name) {
			case "client_ip":
				raw.client = m.value
			case "remote_ip", "remote_addr":
				remote = m.value
			case "method":
				raw.method = m.value
			case "host":
				p.setHost(m.value)
			case "uri":
				uri = m.value
			case "proto":
				raw.proto = m.value
			}
		case headersObject:
			p.setUnredacted(p.canonical(m.name, m.name, "-"), m.value)
		case otherObject:
		}
	}
	if p.optional != nil && p.hasHeaders {
		p.optional.allHeaders = true
	}
	if !hasRequest {
		return errors.New(`no object "request", as a line of Caddy's access log has`)
	}
	setIfAbsent(&raw.client, remote)
	raw.target = uri
	return p.setRaw(&raw)
}

// caddySecrets has the header fields that Caddy does not log without log_credentials.
//
// https://caddyserver.com/docs/caddyfile/options#log-credentials
var caddySecrets = []string{"Authorization", "Cookie", "Proxy-Authorization"}
