package rulefile

// AmbiguousPaths says what happens to a request whose path servers read in different ways.
type AmbiguousPaths string

const (
	AmbiguousMatch  AmbiguousPaths = "match" // the rules that match any of the readings apply; the default
	AmbiguousRefuse AmbiguousPaths = "refuse"
)
