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
	var l logged
	var remote, uri []byte
	seen := false
	for _, m := range p.members {
		switch m.parent {
		case top:
			switch string(m.name) {
			case "ts":
				l.time = m.value
			case "status":
				l.status = m.value
			case "size":
				l.size = m.value
			}
		case request:
			seen = true
			switch string(m.name) {
			case "client_ip":
				l.client = m.value
			case "remote_ip", "remote_addr":
				remote = m.value
			case "method":
				l.method = m.value
			case "host":
				p.setHost(m.value)
			case "uri":
				uri = m.value
			case "proto":
				l.proto = m.value
			}
		case headers:
			p.setUnredacted(p.canonical(m.name, m.name, "-"), m.value)
		case elsewhere:
		}
	}
	if p.learned != nil && p.headers {
		p.learned.all = true
	}
	if !seen {
		return errors.New(`no object "request", as a line of Caddy's access log has`)
	}
	first(&l.client, remote)
	l.target = uri
	return p.setLogged(&l)
}

// caddySecrets has the header fields that Caddy does not log without log_credentials.
//
// https://caddyserver.com/docs/caddyfile/options#log-credentials
var caddySecrets = []string{"Authorization", "Cookie", "Proxy-Authorization"}
