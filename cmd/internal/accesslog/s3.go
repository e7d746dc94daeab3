package accesslog

import (
	"bytes"
	"errors"
	"fmt"
)

// parseS3 parses a line of the server access log of AWS S3. The time of the entry is the time of the request.
//
//	bucket_owner bucket [time] remote_ip requester request_id operation key "request_uri" status error bytes_sent
//	object_size total_time turn_around_time "referer" "user_agent" version_id ...
//
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html
func (p *parser) parseS3(line []byte) error {
	owner, date, ok := bytes.Cut(line, dateStart)
	date, rest, closed := bytes.Cut(date, []byte("] "))
	if !ok || !closed || bytes.Count(owner, space) != 1 {
		return errors.New("no bucket owner, bucket and date in brackets, as a line of S3 has")
	}
	var client, operation, request, status, size, referer, agent []byte
	_, err := cutFields(rest, &client, nil, nil, &operation, nil, &request, &status, nil, &size, nil, nil, nil, &referer, &agent)
	if err != nil {
		return err
	}
	e := &p.entry
	if e.Time, err = parseCLF(date); err != nil {
		return err
	}
	if bytes.IndexByte(operation, '.') < 0 {
		return fmt.Errorf("the operation %s is not one of S3, such as REST.GET.OBJECT", quote(operation))
	}
	if err := e.setClient(client); err != nil {
		return err
	}
	if err := e.setOutcome(status, size); err != nil {
		return err
	}
	e.setRequest(p.unescape(request))
	p.setHeader("Referer", p.unescape(referer))
	p.setHeader("User-Agent", p.unescape(agent))
	return nil
}
