package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/weir-go/weir/cmd/internal/number"
	"github.com/weir-go/weir/engine"
)

type tableSnapshot struct {
	file string
	engine.SharedTable
}

func writeTableText(w io.Writer, table *tableSnapshot) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s: %v\n", table.file, table.Policies[0])
	for i, tier := range table.Policies[1:] {
		fmt.Fprintf(&out, "tier %d: %v\n", i+1, tier)
	}
	fmt.Fprintf(&out, "\nlayout version %d, %s", table.Version, humanize.IBytes(table.Bytes))
	if !table.Made.IsZero() {
		fmt.Fprintf(&out, ", made %s", table.Made.UTC().Format("2006-01-02 15:04:05 MST"))
	}
	fmt.Fprintf(&out, "\n%s\n\n", strings.Join(optionTexts(table.Options), ", "))

	const width = 15
	row := func(name string, n uint64, note string) {
		fmt.Fprintf(&out, "%s\n", strings.TrimRight(fmt.Sprintf("%-*s %*s   %s", width, name, width, number.Comma(n), note), " "))
	}
	row("keys indebted", table.Indebted, "their bucket is not full")
	row("slots", table.Stats.Slots, "")
	row("  never used", table.NeverUsed, "")
	row("  free", table.Free, "")
	row("  live", table.Live, "a key's record, also one whose bucket is full")
	row("  tentative", table.Tentative, "")
	row("  claimed", table.Claimed, "")
	row("    by the dead", table.Deserted, "lost until the next sweep")
	out.WriteByte('\n')
	lastSweep := "none was complete in " + formatAgo(table.At.Sub(table.Swept))
	if table.Stats.Sweeps > 0 {
		lastSweep = "the last one " + formatAgo(table.At.Sub(table.Swept)) + " ago"
	}
	row("sweeps", table.Stats.Sweeps, lastSweep)
	row("  keys", table.Stats.Keys, "indebted, at the last one")
	row("  reclaimed", table.Stats.Reclaimed, "slots of keys whose bucket was full")
	for _, counter := range []struct {
		name string
		n    uint64
		note string
	}{
		{"evictions", table.Stats.Evictions, "keys evicted because there was no room"},
		{"forgiven", table.Stats.Forgiven, "tokens that evicted keys owed"},
		{"no room", table.Stats.NoRoom, "requests refused because there was no room"},
		{"unrecorded", table.Stats.Unrecorded, "requests admitted because there was no room"},
		{"forgotten", table.Stats.Forgotten, "tokens in flight that were never given back"},
		{"retries", table.Stats.Retries, "searches begun again"},
	} {
		if counter.n > 0 {
			row(counter.name, counter.n, counter.note)
		}
	}
	out.WriteByte('\n')
	row("attached", uint64(len(table.Attached)), "")
	for _, p := range table.Attached {
		fmt.Fprintf(&out, "  seat %d: process %d for %s\n", p.Seat, p.PID, formatAgo(p.For))
	}
	_, err := out.WriteTo(w)
	return err
}

func optionTexts(options []struct{ Name, Value string }) (texts []string) {
	for _, o := range options {
		if o.Value != "0" {
			texts = append(texts, o.Name+" "+o.Value)
		}
	}
	return texts
}

// formatAgo returns the time since an event as text. It is rounded to a second, or to a millisecond below ten seconds.
func formatAgo(d time.Duration) string {
	d = max(d, 0)
	if d < 10*time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// redrawTable writes everything for people, and overwrites what the terminal showed before.
func redrawTable(w io.Writer, table *tableSnapshot) error {
	const cursorHome, clearLine, clearBelow = "\x1b[H", "\x1b[K", "\x1b[J"
	var out bytes.Buffer
	if err := writeTableText(&out, table); err != nil {
		return err
	}
	_, err := io.WriteString(w, cursorHome+strings.ReplaceAll(out.String(), "\n", clearLine+"\n")+clearBelow)
	return err
}

func writeTableLine(w io.Writer, table *tableSnapshot) error {
	_, err := fmt.Fprintf(w, "%s indebted=%d live=%d free=%d never_used=%d tentative=%d claimed=%d by_the_dead=%d sweeps=%d "+
		"evictions=%d no_room=%d attached=%d\n", table.At.UTC().Format(time.RFC3339Nano), table.Indebted, table.Live, table.Free, table.NeverUsed,
		table.Tentative, table.Claimed, table.Deserted, table.Stats.Sweeps, table.Stats.Evictions, table.Stats.NoRoom, len(table.Attached))
	return err
}

// tableJSON has the fields that --json writes. Their names and order must not change. An empty list is [], not null.
type tableJSON struct {
	File       string            `json:"file"`
	Version    int               `json:"layout_version"`
	Bytes      uint64            `json:"bytes"`
	Made       *time.Time        `json:"made"` // null if the file system does not have this time
	Policy     string            `json:"policy"`
	Tiers      []string          `json:"tiers"`
	Options    map[string]string `json:"options"`
	At         time.Time         `json:"at"`
	Indebted   uint64            `json:"indebted"`
	Slots      uint64            `json:"slots"`
	NeverUsed  uint64            `json:"never_used"`
	Free       uint64            `json:"free"`
	Live       uint64            `json:"live"`
	Tentative  uint64            `json:"tentative"`
	Claimed    uint64            `json:"claimed"`
	Deserted   uint64            `json:"claimed_by_the_dead"`
	Sweeps     uint64            `json:"sweeps"`
	Swept      time.Time         `json:"swept"`
	SweptKeys  uint64            `json:"swept_keys"` // keys that owed something at the last sweep
	Reclaimed  uint64            `json:"reclaimed"`
	Evictions  uint64            `json:"evictions"`
	Forgiven   uint64            `json:"forgiven"`
	NoRoom     uint64            `json:"no_room"`
	Unrecorded uint64            `json:"unrecorded"`
	Forgotten  uint64            `json:"forgotten"`
	Retries    uint64            `json:"retries"`
	Attached   []attachedJSON    `json:"attached"`
}

type attachedJSON struct {
	Seat    int     `json:"seat"`
	PID     uint64  `json:"pid"`
	Seconds float64 `json:"seconds"`
}

func writeTableJSON(w io.Writer, table *tableSnapshot) error {
	out := tableJSON{
		File: table.file, Version: table.Version, Bytes: table.Bytes, Policy: table.Policies[0].String(),
		Tiers: []string{}, Options: map[string]string{}, At: table.At.UTC(), Indebted: table.Indebted, Slots: table.Stats.Slots,
		NeverUsed: table.NeverUsed, Free: table.Free, Live: table.Live, Tentative: table.Tentative, Claimed: table.Claimed,
		Deserted: table.Deserted, Sweeps: table.Stats.Sweeps, Swept: table.Swept.UTC(), SweptKeys: table.Stats.Keys, Reclaimed: table.Stats.Reclaimed,
		Evictions: table.Stats.Evictions, Forgiven: table.Stats.Forgiven, NoRoom: table.Stats.NoRoom, Unrecorded: table.Stats.Unrecorded,
		Forgotten: table.Stats.Forgotten, Retries: table.Stats.Retries, Attached: []attachedJSON{},
	}
	if made := table.Made.UTC(); !made.IsZero() {
		out.Made = &made
	}
	for _, tier := range table.Policies[1:] {
		out.Tiers = append(out.Tiers, tier.String())
	}
	for _, o := range table.Options {
		out.Options[o.Name] = o.Value
	}
	for _, p := range table.Attached {
		out.Attached = append(out.Attached, attachedJSON{p.Seat, p.PID, p.For.Seconds()})
	}
	return json.NewEncoder(w).Encode(out)
}
