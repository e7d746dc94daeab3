package accesslog

import "errors"

// parseGCP parses an entry of Google Cloud Logging for an Application Load Balancer, as JSON on one line. "timestamp"
// is the time, and "httpRequest" has the request with a complete URL.
//
// https://cloud.google.com/load-balancing/docs/https/https-logging-monitoring
// https://cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry#httprequest
func (p *parser) parseGCP(line []byte) error {
	if err := p.parseJSON(line); err != nil {
		return err
	}
	var l logged
	var referer, agent []byte
	for _, m := range p.members {
		switch {
		case m.parent == top && string(m.name) == "timestamp":
			l.time = m.value
		case m.parent != httpRequest:
		default:
			switch string(m.name) {
			case "remoteIp":
				l.client = m.value
			case "requestMethod":
				l.method = m.value
			case "requestUrl":
				l.target = m.value
			case "protocol":
				l.proto = m.value
			case "status":
				l.status = m.value
			case "responseSize":
				l.size = m.value
			case "referer":
				referer = m.value
			case "userAgent":
				agent = m.value
			}
		}
	}
	if len(l.client) == 0 || len(l.method) == 0 {
		return errors.New(`no "httpRequest" with "remoteIp" and "requestMethod", as an entry of Google Cloud has`)
	}
	if err := p.setLogged(&l); err != nil {
		return err
	}
	if e := &p.entry; !p.setURL() {
		e.Method, e.Target, e.Proto = nil, nil, nil
	}
	p.setHeader("Referer", referer)
	p.setHeader("User-Agent", agent)
	return nil
}
