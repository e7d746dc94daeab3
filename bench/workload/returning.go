package workload

import (
	"fmt"
	"strings"
)

// These are the rows of keys that come back. A real client is mostly below its limit, so its record is idle when it
// comes back. Another key may even have claimed the record. Weir is measured in turns in one process: with idle keys,
// and with a limit under which keys are never idle.

// planned is the number of keys, as a fraction of MaxKeys, for which there is a target.
const planned = 0.6

// returning returns the rows with a new table and uniform keys. The number of keys is planned times MaxKeys.
func returning() []Row {
	var rows []Row
	for _, keys := range []int{1000, 10_000, 100_000, million} {
		rows = append(rows, returningRow(keys, Uniform, planned, false))
	}
	return rows
}

func returningRow(keys int, draw Draw, load float64, aged bool) Row {
	size := map[int]string{1000: "1k", 10_000: "10k", 100_000: "100k", million: "1m"}[keys]
	name, title := "returning-"+size, fmt.Sprintf("%s keys that come back idle", thousands(keys))
	if draw == Zipf {
		name, title = name+"/zipf", title+", Zipf 1.1"
	}
	if load != planned {
		name += fmt.Sprintf("/%g", load)
	}
	title += fmt.Sprintf(", %g of MaxKeys", load)
	if aged {
		name, title = name+"/aged", title+", every slot was used"
	}
	// When the requests repeat, the processor cannot remember their order, because there are too many.
	return Row{Name: name, Title: title, Keys: keys, Draw: draw, Requests: max(2*keys, 100_000),
		Capacity: int(float64(keys) / load), Returning: true, Aged: aged}
}

// Variants returns the variants of a returning row: another order of keys, a fuller or emptier table, or an aged table.
// Other rows have no variants.
func (r *Row) Variants() []Row {
	if !r.Returning {
		return nil
	}
	var all []Row
	for _, draw := range []Draw{Uniform, Zipf} {
		for _, load := range []float64{0.3, planned, 0.9} {
			for _, aged := range []bool{false, true} {
				if v := returningRow(r.Keys, draw, load, aged); v.Name != r.Name {
					all = append(all, v)
				}
			}
		}
	}
	return all
}

// Differences returns the number of differences between a variant and its row.
func (r *Row) Differences() int { return strings.Count(r.Name, "/") }

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
