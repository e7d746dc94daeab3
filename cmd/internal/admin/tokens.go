package admin

// Tokens has the token counts of a rule whose cost comes from answers.
type Tokens struct {
	Settled uint64 `json:"settled"` // so far
	Held    int64  `json:"held"`    // tokens that are held for requests in progress
	Unknown uint64 `json:"unknown"` // requests whose answers had no usage
	// Median and P95 are percentiles of the ratio of a request's cost to the tokens held for it. Both are 0 if the
	// ratio is unknown.
	Median   float64   `json:"half"`
	P95      float64   `json:"most"`
	Warned   [3]uint64 `json:"warned"` // requests that took a key past 50, 80 and 95 % of its limit
	Tightest *Budget   `json:"least"`  // the key with the smallest fraction left; null if none was seen recently
}

type Budget struct {
	Left  uint64  `json:"left"`
	Limit uint64  `json:"limit"`
	Ends  float64 `json:"ends"` // seconds until the budget is used up at the current rate; 0 for never
}
