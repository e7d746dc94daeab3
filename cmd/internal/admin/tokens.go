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
	Least  *Budget   `json:"least"`  // of the key that has the smallest part left; null where none was seen lately
}

// A Budget is what a key has left.
type Budget struct {
	Left  uint64  `json:"left"`
	Limit uint64  `json:"limit"`
	Ends  float64 `json:"ends"` // in that many seconds at the present pace; 0 for never
}
