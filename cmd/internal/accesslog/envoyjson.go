package accesslog

import "errors"

// parseEnvoyJSON parses a line of Envoy's access log in JSON, with the field names of Istio's default format. The
// client is the field "downstream_remote_address", as Envoy determined it. Without this field, the client comes from
// lastForwarded.
//
// https://istio.io/latest/docs/tasks/observability/logs/access-log/#default-access-log-format
// https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage (DOWNSTREAM_REMOTE_ADDRESS)
func (p *parser) parseEnvoyJSON(line []byte) error {
	if err := p.parseJSON(line); err != nil {
		return err
	}
	var l logged
	var forwarded []byte
	for _, m := range p.members {
		if m.parent != top {
			continue
		}
		switch string(m.name) {
		case "start_time":
			l.time = m.value
		case "method":
			l.method = m.value
		case "path":
			l.target = m.value
		case "protocol":
			l.proto = m.value
		case "response_code":
			l.status = m.value
		case "bytes_sent":
			l.size = m.value
		case "authority":
			p.setHost(m.value)
		case "downstream_remote_address", "downstream_remote_address_without_port":
			first(&l.client, m.value)
		case "x_forwarded_for":
			forwarded = m.value
			p.setHeader("X-Forwarded-For", m.value)
		case "user_agent":
			p.setHeader("User-Agent", m.value)
		case "request_id", "x_request_id":
			p.setHeader("X-Request-Id", m.value)
		}
	}
	if len(l.time) == 0 || len(l.status) == 0 {
		return errors.New(`no "start_time" and "response_code", as a line of Envoy's access log has`)
	}
	first(&l.client, lastForwarded(forwarded))
	return p.setLogged(&l)
}
