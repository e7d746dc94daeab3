package accesslog

import "fmt"

// ClientFrom has the client of each entry taken from a header field that a proxy has written, such as X-Forwarded-For,
// instead of from where the format has it: its last address. It is called before the first Next. The error says that
// the log does not hold the header field, or why it cannot be read. A line without it is a *LineError then.
func (l *Log) ClientFrom(header string) error {
	fields, err := l.Fields()
	if err != nil {
		return err
	}
	if !fields.Header(header) {
		return fmt.Errorf("the log does not hold the header field %s of requests (its format is %s)", header, l.Format())
	}
	l.client = header
	return nil
}

// setForwarded takes the client from the last header field of that name.
func (e *Entry) setForwarded(header string) error {
	var list []byte
	for _, h := range e.Headers {
		if h.Name == header {
			list = h.Value
		}
	}
	if err := e.setClient(lastForwarded(list)); err != nil {
		return fmt.Errorf("%s: %w", header, err)
	}
	return nil
}
