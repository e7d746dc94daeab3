package serve

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/weir-go/weir/cmd/internal/metering"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// A refusalForm is the form of a rule's refusals.
type refusalForm struct {
	rulefile.Refusal
	body rulefile.Template // nil if the body has no template
}

// refusals returns the options for the refusals that the file describes. If a rule has a meter and no template, its
// refusals have the form of the called API.
func refusals(f *rulefile.File, meters *metering.Meters) ([]httplimit.Option, error) {
	byRule := map[string]refusalForm{}
	for i := range f.Rules {
		rule := &f.Rules[i]
		refusal := f.RefusalOf(rule)
		body, err := refusal.Compile()
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", rule.Name, err)
		}
		if refusal.Status != 0 || refusal.Header != nil || body != nil {
			byRule[rule.Name] = refusalForm{refusal, body}
		}
	}
	if len(byRule) == 0 && meters == nil {
		return nil, nil
	}
	return []httplimit.Option{httplimit.RefuseWith(func(w http.ResponseWriter, r *http.Request, res httplimit.Result) {
		c, ok := res.Tightest()
		form, hasForm := refusalForm{}, false
		if ok && res.Status() == http.StatusTooManyRequests {
			form, hasForm = byRule[c.Name()]
			if form.body == nil && meters.Speaks(c.Name()) && !httplimit.IsGRPC(r) {
				metering.Refuse(w, r, &res, c, form.writeFields(w.Header(), &res))
				return
			}
		}
		if !hasForm || httplimit.IsGRPC(r) {
			res.Answer(w, r, res.Status())
			return
		}
		form.answer(w, r, &res, c)
	})}, nil
}

// writeFields writes the fields of a refusal and returns its status.
func (l *refusalForm) writeFields(h http.Header, res *httplimit.Result) (status int) {
	if status = res.Status(); l.Status != 0 {
		status = l.Status
	}
	for name, values := range l.Header {
		if name == "Vary" {
			values = slices.Concat(h[name], values)
		}
		h[name] = values
	}
	return status
}

func (l *refusalForm) answer(w http.ResponseWriter, r *http.Request, res *httplimit.Result, c *httplimit.Check) {
	status, h := l.writeFields(w.Header(), res), w.Header()
	if l.body == nil {
		res.Answer(w, r, status)
		return
	}
	values := rulefile.RefusalValues{Rule: c.Name(), Status: status, Limit: c.Decision.Limit, Remaining: c.Decision.Remaining}
	if wait := res.RetryAfter(); wait == engine.Never {
		values.Never = true
	} else {
		values.RetryAfter = int64(wait / time.Second)
	}
	var body bytes.Buffer
	if err := l.body.Execute(&body, values); err != nil { // never fails: the template was tried when it was read
		res.Answer(w, r, status)
		return
	}
	h.Set("Content-Type", l.ContentType)
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // an error means that the client has gone
}
