package rulefile

// Single returns a file with one rule. Each address is a client, and the built-in echo answers.
func Single(r Rule) *File {
	f := defaults()
	f.Name = r.Name
	f.Listen = []Listener{{Address: defaultAddress}}
	f.ClientIP.From = FromSocket
	f.Rules = []Rule{r}
	return f
}

// NewRule returns a rule for all requests, with the client's address as the key. The caller must set the policy.
// Everything else has its default.
func NewRule(name string) Rule {
	t := &ruleText{}
	s := t.section()
	s.fill()
	t.Name = name
	return t.Rule
}

func defaults() *File {
	f := &File{}
	s := f.section()
	s.fill()
	return f
}
