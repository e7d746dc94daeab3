package rulefile

// Single returns a file that has only one rule: each address is a client, and the echo answers requests.
func Single(r Rule) *File {
	f := defaults()
	f.Name = r.Name
	f.Listen = []Listener{{Address: defaultAddress}}
	f.ClientIP.From = FromSocket
	f.Rules = []Rule{r}
	return f
}

// NewRule returns a rule for all requests by their address. It has a name, and defaults for everything else except the
// policy, which the caller sets.
func NewRule(name string) Rule {
	t := &ruleText{}
	s := t.section()
	s.fill()
	t.Name = name
	return t.Rule
}

// defaults returns a file that has only defaults.
func defaults() *File {
	f := &File{}
	s := f.section()
	s.fill()
	return f
}
