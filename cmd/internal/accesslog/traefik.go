package accesslog

import (
	"bytes"
	"errors"
)

// parseTraefik parses a line of Traefik's access log in JSON. Header fields have names such as "request_NAME", and are
// logged only if configured. Traefik's format "common" is read as combined.
//
// https://doc.traefik.io/traefik/observability/access-logs/#limiting-the-fieldsincluding-headers (available fields)
func (p *parser) parseTraefik(line []byte) error {
	if err := p.parseJSON(line); err != nil {
		return err
	}
	var raw rawFields
	var address, localTime, host []byte
	for _, m := range p.members {
		if m.parent != topObject {
			continue
		}
		switch string(m.name) {
		case "ClientHost":
			raw.client = m.value
		case "ClientAddr":
			address = m.value
		case "StartUTC":
			raw.time = m.value
		case "StartLocal":
			localTime = m.value
		case "RequestMethod":
			raw.method = m.value
		case "RequestPath":
			raw.target = m.value
		case "RequestProtocol":
			raw.proto = m.value
		case "RequestHost":
			p.setHost(m.value)
		case "RequestAddr":
			host = m.value
		case "DownstreamStatus":
			raw.status = m.value
		case "DownstreamContentSize":
			raw.size = m.value
		default:
			if name, ok := bytes.CutPrefix(m.name, []byte("request_")); ok {
				p.setUnredacted(p.canonical(m.name, name, "-"), m.value)
			}
		}
	}
	setIfAbsent(&raw.client, address)
	setIfAbsent(&raw.time, localTime)
	if len(p.entry.Host) == 0 && len(host) > 0 {
		p.setHost(host)
	}
	if len(raw.client) == 0 || len(raw.method) == 0 {
		return errors.New(`no "ClientHost" and "RequestMethod", as a line of Traefik's access log has`)
	}
	return p.setRaw(&raw)
}
