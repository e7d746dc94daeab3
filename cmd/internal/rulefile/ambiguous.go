package rulefile

// AmbiguousPaths says what becomes of a request with a path that servers read in several ways.
type AmbiguousPaths string

// What AmbiguousPaths can be.
const (
	AmbiguousMatch  AmbiguousPaths = "match" // it meets the rules for every reading; the default
	AmbiguousRefuse AmbiguousPaths = "refuse"
)
