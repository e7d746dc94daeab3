package admin

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/internal/actions"
)

// Actions configures the timed actions of operators.
type Actions struct {
	Table *actions.Table
	// NeedToken reports whether actions require a token, because other machines can reach the listener.
	NeedToken func() bool
	// Client returns the network that contains an address and that rules count as one client.
	Client func(netip.Addr) netip.Prefix
}

// An actionRequest asks for an action on a network, a rule, or a key of a rule. The key is given by its parts or its
// hash.
type actionRequest struct {
	Kind    actions.Kind `json:"kind"`
	Network string       `json:"network"`
	Rule    string       `json:"rule"`
	Parts   []string     `json:"parts"`
	Hash    string       `json:"hash"`
	For     string       `json:"for"` // a duration such as 1h30m
	Who     string       `json:"who"`
	Why     string       `json:"why"`
	Confirm bool         `json:"confirm"` // begin the action even if there are warnings
}

type actionView struct {
	ID      uint64       `json:"id"`
	Kind    actions.Kind `json:"kind"`
	Network string       `json:"network,omitempty"`
	Rule    string       `json:"rule,omitempty"`
	Key     string       `json:"key,omitempty"` // the key's text if keys are shown, else its id
	From    time.Time    `json:"from"`
	Until   time.Time    `json:"until"`
	Left    int64        `json:"left_seconds"`
	Who     string       `json:"who"`
	Why     string       `json:"why"`
	Hits    uint64       `json:"hits"`    // requests to which the action has applied, in this process
	Applies bool         `json:"applies"` // false: the rule does not exist now, or its keys have another form
}

// foreseen is the answer to a request for an action. The action has begun, or the operator must confirm it first.
type foreseen struct {
	Error    string           `json:"error,omitempty"`
	Action   *actionView      `json:"action,omitempty"`
	Warnings []string         `json:"warnings"`
	Seen     actions.Sighting `json:"seen"`
}

func (a *Admin) serveActions(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"actions": a.actionViews(a.rules()), "most": actions.Most})
}

func (a *Admin) actionViews(rules []Rule) []actionView {
	views := []actionView{}
	if a.config.Actions == nil {
		return views
	}
	for _, of := range a.config.Actions.Table.List() {
		views = append(views, a.actionView(rules, of))
	}
	return views
}

func (a *Admin) actionView(rules []Rule, of *actions.Active) actionView {
	v := actionView{
		ID: of.ID, Kind: of.Kind, Rule: of.Rule, From: of.From, Until: of.Until, Who: of.Who, Why: of.Why, Hits: of.Hits(),
		Left: int64(a.config.Actions.Table.Left(of) / time.Second), Applies: of.Rule == "",
	}
	if of.Network.IsValid() {
		v.Network = of.Network.String()
	}
	if of.IsKey() {
		id, _ := of.Key.MarshalText() // never returns an error
		v.Key = string(id)
	}
	for _, r := range rules {
		if r.Name != of.Rule {
			continue
		}
		v.Applies = !of.IsKey() || r.Form == of.Form
		if of.IsKey() && a.config.Keys == KeysFull && of.Text != "" {
			v.Key = readable(of.Text, r.Parts)
		}
	}
	return v
}

// serveAct begins an action. If the action may affect many clients and is not confirmed, serveAct answers 409 with
// warnings.
func (a *Admin) serveAct(w http.ResponseWriter, r *http.Request) {
	var request actionRequest
	if status, err := readForm(w, r, &request); err != nil {
		fail(w, status, err)
		return
	}
	who, status, err := a.actor(r, request.Who)
	if err != nil {
		fail(w, status, err)
		return
	}
	act, lasts, err := a.actionOf(request)
	if err != nil {
		fail(w, http.StatusUnprocessableEntity, err)
		return
	}
	act.Who = who
	seen, warnings := a.config.Actions.Table.Foresee(&act, a.config.Actions.Client, a.config.Keys == KeysFull)
	if len(warnings) > 0 && !request.Confirm {
		answer(w, http.StatusConflict, foreseen{
			Error: strings.Join(warnings, "; ") + ": confirm it", Warnings: warnings, Seen: seen,
		})
		return
	}
	done, err := a.config.Actions.Table.Add(act, lasts)
	if err != nil {
		fail(w, http.StatusUnprocessableEntity, err)
		return
	}
	v := a.actionView(a.rules(), done)
	answer(w, http.StatusOK, foreseen{Action: &v, Warnings: append([]string{}, warnings...), Seen: seen})
}

func (a *Admin) serveEnd(w http.ResponseWriter, r *http.Request) {
	var request struct {
		ID  uint64 `json:"id"`
		Who string `json:"who"`
	}
	if status, err := readForm(w, r, &request); err != nil {
		fail(w, status, err)
		return
	}
	who, status, err := a.actor(r, request.Who)
	if err != nil {
		fail(w, status, err)
		return
	}
	ended, err := a.config.Actions.Table.End(request.ID, who)
	switch {
	case errors.Is(err, actions.ErrNone):
		fail(w, http.StatusNotFound, err)
	case err != nil:
		fail(w, http.StatusUnprocessableEntity, err)
	default:
		answer(w, http.StatusOK, a.actionView(a.rules(), ended))
	}
}

// actor returns the name of the operator. It is the name of the token, or else the name that the request gives.
func (a *Admin) actor(r *http.Request, said string) (who string, status int, err error) {
	c := callerOf(r)
	switch {
	case a.access() == nil && a.config.Actions.NeedToken():
		return "", http.StatusForbidden, errors.New("actions require a token if other machines can reach the listener: set admin.token_file")
	case c.sure && said != "" && said != c.who:
		return "", http.StatusUnprocessableEntity, fmt.Errorf("who is %q, and the token is that of %s", said, c.who)
	case !c.sure && a.access().has(said):
		return "", http.StatusUnprocessableEntity, fmt.Errorf("who is %q, which is the name of another token", said)
	case c.who != "" && (c.sure || said == ""):
		return c.who, 0, nil
	}
	return said, 0, nil
}

// actionOf returns the requested action, without its operator.
func (a *Admin) actionOf(request actionRequest) (act actions.Action, lasts time.Duration, err error) {
	act.Kind, act.Why = request.Kind, request.Why
	if lasts, err = time.ParseDuration(request.For); err != nil {
		return act, 0, fmt.Errorf("for %.40q: want a time such as 1h or 90m", request.For)
	}
	if request.Network != "" {
		if request.Rule != "" || request.Parts != nil || request.Hash != "" {
			return act, 0, errors.New("a network and a rule: want one of them")
		}
		act.Network, err = actions.ParseNetwork(request.Network)
		return act, lasts, err
	}
	act.Rule = request.Rule
	if request.Parts == nil && request.Hash == "" {
		for _, r := range a.rules() {
			if r.Name == request.Rule {
				return act, lasts, nil
			}
		}
		return act, 0, fmt.Errorf("there is no rule %q, and no network: want one of them", request.Rule)
	}
	rule, b, err := a.bucket(keyRequest{request.Rule, request.Parts, request.Hash})
	if err != nil {
		return act, 0, err
	}
	act.Form = rule.Form
	act.Key, act.Text, err = a.keyOf(rule, b, request)
	if a.config.Keys != KeysFull {
		act.Text = ""
	}
	return act, lasts, err
}

// keyOf returns the id of a bucket's key, and the key's text if known.
func (a *Admin) keyOf(rule Rule, b Bucket, request actionRequest) (id actions.KeyID, text string, err error) {
	table := a.config.Actions.Table
	switch {
	case len(rule.Parts) == 0:
		return id, "", fmt.Errorf("rule %q has one key for all requests: act on the rule", rule.Name)
	case request.Hash == "":
		text = rule.Text(request.Parts)
	case rule.Stored != nil:
		text = b.Text
	default:
		hash, _ := parseHash(request.Hash)
		switch e, _ := a.refusals.find(rule.Name, hash); {
		case e.text == "":
			return id, "", fmt.Errorf("the text of key %s was not kept, because too many other keys were refused: write it", request.Hash)
		case a.config.Keys == KeysHashed:
			copy(id[:], e.text)
			return id, "", nil
		case len(e.text) > textBytes:
			return id, "", fmt.Errorf("key %s is longer than the %d bytes that are kept: write it", request.Hash, textBytes)
		default:
			text = e.text
		}
	}
	return table.KeyID(text), clip(text), nil
}

// keptOf returns the text that is stored for a refused key, because an action for the key needs the text later. If keys
// are hashed, it returns the key's id instead.
func (a *Admin) keptOf(text string) string {
	if a.config.Keys == KeysFull {
		return clip(text)
	}
	if a.config.Actions == nil {
		return ""
	}
	id := a.config.Actions.Table.KeyID(text)
	return string(id[:])
}
