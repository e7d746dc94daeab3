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

// An actionReply is the answer to a request for an action. The action has begun, or the operator must confirm it first.
type actionReply struct {
	Error    string           `json:"error,omitempty"`
	Action   *actionView      `json:"action,omitempty"`
	Warnings []string         `json:"warnings"`
	Seen     actions.Sighting `json:"seen"`
}

func (a *Admin) serveActions(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"actions": a.actionViews(a.rules()), "most": actions.MaxActions})
}

func (a *Admin) actionViews(rules []Rule) []actionView {
	views := []actionView{}
	if a.config.Actions == nil {
		return views
	}
	for _, active := range a.config.Actions.Table.List() {
		views = append(views, a.actionView(rules, active))
	}
	return views
}

func (a *Admin) actionView(rules []Rule, active *actions.Active) actionView {
	v := actionView{
		ID: active.ID, Kind: active.Kind, Rule: active.Rule, From: active.From, Until: active.Until, Who: active.Who, Why: active.Why, Hits: active.Hits(),
		Left: int64(a.config.Actions.Table.Left(active) / time.Second), Applies: active.Rule == "",
	}
	if active.Network.IsValid() {
		v.Network = active.Network.String()
	}
	if active.IsKey() {
		id, _ := active.Key.MarshalText() // never returns an error
		v.Key = string(id)
	}
	for _, r := range rules {
		if r.Name != active.Rule {
			continue
		}
		v.Applies = !active.IsKey() || r.Form == active.Form
		if active.IsKey() && a.config.Keys == KeysFull && active.Text != "" {
			v.Key = readable(active.Text, r.Parts)
		}
	}
	return v
}

// serveAct begins an action. If the action may affect many clients and is not confirmed, serveAct answers 409 with
// warnings.
func (a *Admin) serveAct(w http.ResponseWriter, r *http.Request) {
	var request actionRequest
	if status, err := readForm(w, r, &request); err != nil {
		writeError(w, status, err)
		return
	}
	actor, status, err := a.actor(r, request.Who)
	if err != nil {
		writeError(w, status, err)
		return
	}
	act, duration, err := a.actionOf(request)
	if err != nil {
		writeError(w, http.StatusUnprocessableEntity, err)
		return
	}
	act.Who = actor
	sighting, warnings := a.config.Actions.Table.Preview(&act, a.config.Actions.Client, a.config.Keys == KeysFull)
	if len(warnings) > 0 && !request.Confirm {
		writeJSON(w, http.StatusConflict, actionReply{
			Error: strings.Join(warnings, "; ") + ": confirm it", Warnings: warnings, Seen: sighting,
		})
		return
	}
	active, err := a.config.Actions.Table.Add(act, duration)
	if err != nil {
		writeError(w, http.StatusUnprocessableEntity, err)
		return
	}
	v := a.actionView(a.rules(), active)
	writeJSON(w, http.StatusOK, actionReply{Action: &v, Warnings: append([]string{}, warnings...), Seen: sighting})
}

func (a *Admin) serveEnd(w http.ResponseWriter, r *http.Request) {
	var request struct {
		ID  uint64 `json:"id"`
		Who string `json:"who"`
	}
	if status, err := readForm(w, r, &request); err != nil {
		writeError(w, status, err)
		return
	}
	actor, status, err := a.actor(r, request.Who)
	if err != nil {
		writeError(w, status, err)
		return
	}
	ended, err := a.config.Actions.Table.End(request.ID, actor)
	switch {
	case errors.Is(err, actions.ErrNone):
		writeError(w, http.StatusNotFound, err)
	case err != nil:
		writeError(w, http.StatusUnprocessableEntity, err)
	default:
		writeJSON(w, http.StatusOK, a.actionView(a.rules(), ended))
	}
}

// actor returns the name of the operator. It is the name of the token, or else the name that the request gives.
func (a *Admin) actor(r *http.Request, name string) (actor string, status int, err error) {
	c := callerOf(r)
	switch {
	case a.access() == nil && a.config.Actions.NeedToken():
		return "", http.StatusForbidden, errors.New("actions require a token if other machines can reach the listener: set admin.token_file")
	case c.verified && name != "" && name != c.name:
		return "", http.StatusUnprocessableEntity, fmt.Errorf("who is %q, and the token is that of %s", name, c.name)
	case !c.verified && a.access().hasName(name):
		return "", http.StatusUnprocessableEntity, fmt.Errorf("who is %q, which is the name of another token", name)
	case c.name != "" && (c.verified || name == ""):
		return c.name, 0, nil
	}
	return name, 0, nil
}

// actionOf returns the requested action, without its operator.
func (a *Admin) actionOf(request actionRequest) (act actions.Action, duration time.Duration, err error) {
	act.Kind, act.Why = request.Kind, request.Why
	if duration, err = time.ParseDuration(request.For); err != nil {
		return act, 0, fmt.Errorf("for %.40q: want a time such as 1h or 90m", request.For)
	}
	if request.Network != "" {
		if request.Rule != "" || request.Parts != nil || request.Hash != "" {
			return act, 0, errors.New("a network and a rule: want one of them")
		}
		act.Network, err = actions.ParseNetwork(request.Network)
		return act, duration, err
	}
	act.Rule = request.Rule
	if request.Parts == nil && request.Hash == "" {
		for _, r := range a.rules() {
			if r.Name == request.Rule {
				return act, duration, nil
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
	return act, duration, err
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
		case len(e.text) > maxText:
			return id, "", fmt.Errorf("key %s is longer than the %d bytes that are kept: write it", request.Hash, maxText)
		default:
			text = e.text
		}
	}
	return table.KeyID(text), clip(text), nil
}

// storedText returns what is stored for a refused key with this text, because an action for the key may need it later.
// It is the text if keys are shown in full, else the key's id, or "" without actions.
func (a *Admin) storedText(text string) string {
	if a.config.Keys == KeysFull {
		return clip(text)
	}
	if a.config.Actions == nil {
		return ""
	}
	id := a.config.Actions.Table.KeyID(text)
	return string(id[:])
}
