package budget

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// WriteJSON writes the report as JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// notTried names the pitfalls for which there is no check.
const notTried = "5, 31 to 33, 35 to 37, 39, 40: a tokenizer that fails, a window that ends, a store, batches"

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d checks, %d requests in %.0f s\n\n", r.Source, len(r.Results), r.Requests, r.Seconds)
	for _, result := range r.Results {
		status, text := "ok", result.Found
		switch {
		case result.Fault != "":
			status, text = "fault", result.Fault
		case result.Skipped != "":
			status, text = "not tried", result.Skipped
		}
		fmt.Fprintf(&b, "%-9s %2s  %-43s %s\n", status, result.Pitfall, result.Name, text)
	}
	fmt.Fprintf(&b, "\nThe numbers are those of the pitfalls in docs/budgets.md.\nNot tried: %s.\n\n%d to look at\n", notTried, r.Faults)
	_, err := io.WriteString(w, b.String())
	return err
}
