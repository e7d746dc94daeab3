package rulefile

// AmbiguousPaths says what happens to a request whose path servers read in different ways.
type AmbiguousPaths string

// What AmbiguousPaths can be.
const (
	AmbiguousMatch  AmbiguousPaths = "match" // it meets the rules for every reading; the default
	AmbiguousRefuse AmbiguousPaths = "refuse"
)
