package accesslog

import "bytes"

// cutContainer removes what a container runtime writes around a program's line, if anything:
//
//	2026-11-20T09:00:00.123456789Z stdout F ...                        CRI: containerd and CRI-O, as in Kubernetes
//	{"log":"...\n","stream":"stdout","time":"2026-11-20T09:00:00Z"}   Docker's json-file
//
// A long line may be logged in pieces (P in CRI, no line end in Docker). A piece stays unchanged, so that no format
// accepts it.
//
// https://github.com/kubernetes/design-proposals-archive/blob/main/node/kubelet-cri-logging.md
// https://docs.docker.com/engine/logging/drivers/json-file/
func (p *parser) cutContainer(line []byte) []byte {
	if bytes.HasPrefix(line, []byte(`{"log":"`)) {
		return p.cutDocker(line)
	}
	date, rest, ok := bytes.Cut(line, space)
	if !ok || !isNumber(date[:min(1, len(date))]) {
		return line
	}
	for _, stream := range []string{"stdout F ", "stderr F "} {
		if text, ok := bytes.CutPrefix(rest, []byte(stream)); ok {
			if _, err := parseISO(date); err == nil {
				return text
			}
		}
	}
	return line
}

func (p *parser) cutDocker(line []byte) []byte {
	if p.parseJSON(line) != nil {
		return line
	}
	var text []byte
	isStream := false
	for _, m := range p.members {
		switch value := string(m.value); {
		case m.parent != topObject:
		case string(m.name) == "log":
			text = m.value
		case string(m.name) == "stream":
			isStream = value == "stdout" || value == "stderr"
		}
	}
	text, complete := bytes.CutSuffix(text, []byte("\n"))
	if !isStream || !complete {
		return line
	}
	p.wrapped = append(p.wrapped[:0], text...) // the next parse reuses the memory of the members
	return p.wrapped
}
