package accesslog

import (
	"bytes"
	"errors"
)

// parseNginx parses a line of nginx as JSON (escape=json). The operator's configuration defines the format; each member
// must have the name of its variable:
//   - client: "remote_addr"
//   - time: "time_iso8601", "time_local" or "msec", or the value of one of these variables under the name "time",
//     "timestamp" or "@timestamp"
//   - request: "request", or both "request_method" and "request_uri"
//   - status: "status"
//   - size: "body_bytes_sent" or "bytes_sent"
//   - host: "host", "http_host" or "server_name"
//   - header fields: "http_NAME"
//
// The variable "uri" is not used as the path, because nginx changes it while it handles a request.
//
// https://nginx.org/en/docs/http/ngx_http_log_module.html#log_format
// https://nginx.org/en/docs/http/ngx_http_core_module.html#variables
func (p *parser) parseNginx(line []byte) error {
	if err := p.parseJSON(line); err != nil {
		return err
	}
	var raw rawFields
	var host, server, bytesSent []byte
	hasRequest := false
	for _, m := range p.members {
		if m.parent != topObject {
			continue
		}
		switch string(m.name) {
		case "remote_addr":
			raw.client = m.value
		case "time_iso8601", "time_local", "msec", "time", "timestamp", "@timestamp":
			setIfAbsent(&raw.time, m.value)
		case "request":
			hasRequest, raw.line = true, m.value
		case "request_method":
			raw.method = m.value
		case "request_uri":
			hasRequest, raw.target = true, m.value
		case "server_protocol":
			raw.proto = m.value
		case "status":
			raw.status = m.value
		case "body_bytes_sent":
			raw.size = m.value
		case "bytes_sent":
			bytesSent = m.value
		case "host":
			p.setHost(m.value)
		case "http_host":
			host = m.value
		case "server_name":
			server = m.value
		default:
			if name, ok := bytes.CutPrefix(m.name, []byte("http_")); ok {
				p.setHeader(p.canonical(m.name, name, "_"), m.value)
			}
		}
	}
	setIfAbsent(&raw.size, bytesSent)
	for _, fallback := range [][]byte{host, server} {
		if len(p.entry.Host) == 0 && len(fallback) > 0 {
			p.setHost(fallback)
		}
	}
	if len(raw.client) == 0 || !hasRequest {
		return errors.New(`no "remote_addr" and "request" or "request_uri", as a line with nginx's names has`)
	}
	return p.setRaw(&raw)
}
