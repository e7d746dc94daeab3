package admin

// Tokens has the token counts of a rule whose cost comes from the answers.
type Tokens struct {
	Settled uint64 `json:"settled"` // so far
	Held    int64  `json:"held"`    // for requests under way
	Unknown uint64 `json:"unknown"` // requests whose answers had no usage
	// Half is the median of the requests' costs, as a fraction of what was held, and Most the 95th percentile. Both are
	// 0 if they are not known.
	Half   float64   `json:"half"`
	Most   float64   `json:"most"`
	Warned [3]uint64 `json:"warned"` // requests that took a key past 50, 80 and 95 % of its limit
	Least  *Budget   `json:"least"`  // of the key with the smallest fraction left; null if no key was seen recently
}

// A Budget is the state of a key's budget.
type Budget struct {
	Left  uint64  `json:"left"`
	Limit uint64  `json:"limit"`
	Ends  float64 `json:"ends"` // seconds until it is used up at the current rate; 0 for never
}
