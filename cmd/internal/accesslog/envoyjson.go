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
	var raw rawFields
	var forwarded []byte
	for _, m := range p.members {
		if m.parent != topObject {
			continue
		}
		switch string(m.name) {
		case "start_time":
			raw.time = m.value
		case "method":
			raw.method = m.value
		case "path":
			raw.target = m.value
		case "protocol":
			raw.proto = m.value
		case "response_code":
			raw.status = m.value
		case "bytes_sent":
			raw.size = m.value
		case "authority":
			p.setHost(m.value)
		case "downstream_remote_address", "downstream_remote_address_without_port":
			setIfAbsent(&raw.client, m.value)
		case "x_forwarded_for":
			forwarded = m.value
			p.setHeader("X-Forwarded-For", m.value)
		case "user_agent":
			p.setHeader("User-Agent", m.value)
		case "request_id", "x_request_id":
			p.setHeader("X-Request-Id", m.value)
		}
	}
	if len(raw.time) == 0 || len(raw.status) == 0 {
		return errors.New(`no "start_time" and "response_code", as a line of Envoy's access log has`)
	}
	setIfAbsent(&raw.client, lastForwarded(forwarded))
	return p.setRaw(&raw)
}
