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
	var raw rawFields
	var referer, agent []byte
	for _, m := range p.members {
		switch {
		case m.parent == topObject && string(m.name) == "timestamp":
			raw.time = m.value
		case m.parent != httpRequestObject:
		default:
			switch string(m.name) {
			case "remoteIp":
				raw.client = m.value
			case "requestMethod":
				raw.method = m.value
			case "requestUrl":
				raw.target = m.value
			case "protocol":
				raw.proto = m.value
			case "status":
				raw.status = m.value
			case "responseSize":
				raw.size = m.value
			case "referer":
				referer = m.value
			case "userAgent":
				agent = m.value
			}
		}
	}
	if len(raw.client) == 0 || len(raw.method) == 0 {
		return errors.New(`no "httpRequest" with "remoteIp" and "requestMethod", as an entry of Google Cloud has`)
	}
	if err := p.setRaw(&raw); err != nil {
		return err
	}
	if e := &p.entry; !p.setURL() {
		e.Method, e.Target, e.Proto = nil, nil, nil
	}
	p.setHeader("Referer", referer)
	p.setHeader("User-Agent", agent)
	return nil
}
