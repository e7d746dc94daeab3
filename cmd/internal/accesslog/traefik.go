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
	var l logged
	var address, local, host []byte
	for _, m := range p.members {
		if m.parent != top {
			continue
		}
		switch string(m.name) {
		case "ClientHost":
			l.client = m.value
		case "ClientAddr":
			address = m.value
		case "StartUTC":
			l.time = m.value
		case "StartLocal":
			local = m.value
		case "RequestMethod":
			l.method = m.value
		case "RequestPath":
			l.target = m.value
		case "RequestProtocol":
			l.proto = m.value
		case "RequestHost":
			p.setHost(m.value)
		case "RequestAddr":
			host = m.value
		case "DownstreamStatus":
			l.status = m.value
		case "DownstreamContentSize":
			l.size = m.value
		default:
			if name, ok := bytes.CutPrefix(m.name, []byte("request_")); ok {
				p.setUnredacted(p.canonical(m.name, name, "-"), m.value)
			}
		}
	}
	first(&l.client, address)
	first(&l.time, local)
	if len(p.entry.Host) == 0 && len(host) > 0 {
		p.setHost(host)
	}
	if len(l.client) == 0 || len(l.method) == 0 {
		return errors.New(`no "ClientHost" and "RequestMethod", as a line of Traefik's access log has`)
	}
	return p.setLogged(&l)
}
