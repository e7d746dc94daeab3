package rulefile

// Single returns the file of one rule and nothing else: each address is a client, and requests are
// answered by the echo.
func Single(r Rule) *File {
	f := defaults()
	f.Name = r.Name
	f.Listen = []Listener{{Address: defaultAddress}}
	f.ClientIP.From = FromSocket
	f.Rules = []Rule{r}
	return f
}

// NewRule returns a rule for all requests by their address, with everything at its default but the
// name. The policy is for the caller to fill in.
func NewRule(name string) Rule {
	t := &ruleText{}
	s := t.section()
	s.fill()
	t.Name = name
	return t.Rule
}

// defaults returns a file with nothing but what goes without saying.
func defaults() *File {
	f := &File{}
	s := f.section()
	s.fill()
	return f
}
