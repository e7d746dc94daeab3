package accesslog

import "fmt"

// ClientFrom takes the client of each entry from a header field, such as X-Forwarded-For: the client is the last
// address in the field. A line without the field gives a *LineError. ClientFrom must be called before the first Next.
// It returns an error if the log lacks the field or cannot be read.
func (l *Log) ClientFrom(header string) error {
	fields, err := l.Fields()
	if err != nil {
		return err
	}
	if !fields.Header(header) {
		return fmt.Errorf("the log does not have the header field %s of requests (its format is %s)", header, l.Format())
	}
	l.client = header
	return nil
}

// setForwarded sets the client to the last address in the last header field with the name.
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
