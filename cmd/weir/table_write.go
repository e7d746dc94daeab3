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

type seenTable struct {
	file string
	engine.SharedTable
}

func writeTableText(w io.Writer, s *seenTable) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s: %v\n", s.file, s.Policies[0])
	for i, tier := range s.Policies[1:] {
		fmt.Fprintf(&out, "tier %d: %v\n", i+1, tier)
	}
	fmt.Fprintf(&out, "\nlayout version %d, %s", s.Version, humanize.IBytes(s.Bytes))
	if !s.Made.IsZero() {
		fmt.Fprintf(&out, ", made %s", s.Made.UTC().Format("2006-01-02 15:04:05 MST"))
	}
	fmt.Fprintf(&out, "\n%s\n\n", strings.Join(givenOptions(s.Options), ", "))

	const width = 15
	row := func(name string, n uint64, note string) {
		fmt.Fprintf(&out, "%s\n", strings.TrimRight(fmt.Sprintf("%-*s %*s   %s", width, name, width, number.Comma(n), note), " "))
	}
	row("keys indebted", s.Indebted, "their bucket is not full")
	row("slots", s.Stats.Slots, "")
	row("  never used", s.NeverUsed, "")
	row("  free", s.Free, "")
	row("  live", s.Live, "a key's record, also one whose bucket is full")
	row("  tentative", s.Tentative, "")
	row("  claimed", s.Claimed, "")
	row("    by the dead", s.Deserted, "lost until the next sweep")
	out.WriteByte('\n')
	swept := "none was complete in " + ago(s.At.Sub(s.Swept))
	if s.Stats.Sweeps > 0 {
		swept = "the last one " + ago(s.At.Sub(s.Swept)) + " ago"
	}
	row("sweeps", s.Stats.Sweeps, swept)
	row("  keys", s.Stats.Keys, "indebted, at the last one")
	row("  reclaimed", s.Stats.Reclaimed, "slots of keys whose bucket was full")
	for _, rare := range []struct {
		name string
		n    uint64
		note string
	}{
		{"evictions", s.Stats.Evictions, "keys evicted because there was no room"},
		{"forgiven", s.Stats.Forgiven, "tokens that evicted keys owed"},
		{"no room", s.Stats.NoRoom, "requests refused because there was no room"},
		{"unrecorded", s.Stats.Unrecorded, "requests admitted because there was no room"},
		{"forgotten", s.Stats.Forgotten, "tokens in flight that were never given back"},
		{"retries", s.Stats.Retries, "searches begun again"},
	} {
		if rare.n > 0 {
			row(rare.name, rare.n, rare.note)
		}
	}
	out.WriteByte('\n')
	row("attached", uint64(len(s.Attached)), "")
	for _, p := range s.Attached {
		fmt.Fprintf(&out, "  seat %d: process %d for %s\n", p.Seat, p.PID, ago(p.For))
	}
	_, err := out.WriteTo(w)
	return err
}

func givenOptions(options []struct{ Name, Value string }) (texts []string) {
	for _, o := range options {
		if o.Value != "0" {
			texts = append(texts, o.Name+" "+o.Value)
		}
	}
	return texts
}

// The function ago returns a past duration as text. It is rounded to a second, or less if the duration is short.
func ago(d time.Duration) string {
	d = max(d, 0)
	if d < 10*time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// redrawTable writes everything for people, and overwrites what the terminal showed before.
func redrawTable(w io.Writer, s *seenTable) error {
	const top, restOfLine, rest = "\x1b[H", "\x1b[K", "\x1b[J"
	var out bytes.Buffer
	if err := writeTableText(&out, s); err != nil {
		return err
	}
	_, err := io.WriteString(w, top+strings.ReplaceAll(out.String(), "\n", restOfLine+"\n")+rest)
	return err
}

func writeTableLine(w io.Writer, s *seenTable) error {
	_, err := fmt.Fprintf(w, "%s indebted=%d live=%d free=%d never_used=%d tentative=%d claimed=%d by_the_dead=%d sweeps=%d "+
		"evictions=%d no_room=%d attached=%d\n", s.At.UTC().Format(time.RFC3339Nano), s.Indebted, s.Live, s.Free, s.NeverUsed,
		s.Tentative, s.Claimed, s.Deserted, s.Stats.Sweeps, s.Stats.Evictions, s.Stats.NoRoom, len(s.Attached))
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

func writeTableJSON(w io.Writer, s *seenTable) error {
	out := tableJSON{
		File: s.file, Version: s.Version, Bytes: s.Bytes, Policy: s.Policies[0].String(),
		Tiers: []string{}, Options: map[string]string{}, At: s.At.UTC(), Indebted: s.Indebted, Slots: s.Stats.Slots,
		NeverUsed: s.NeverUsed, Free: s.Free, Live: s.Live, Tentative: s.Tentative, Claimed: s.Claimed,
		Deserted: s.Deserted, Sweeps: s.Stats.Sweeps, Swept: s.Swept.UTC(), SweptKeys: s.Stats.Keys, Reclaimed: s.Stats.Reclaimed,
		Evictions: s.Stats.Evictions, Forgiven: s.Stats.Forgiven, NoRoom: s.Stats.NoRoom, Unrecorded: s.Stats.Unrecorded,
		Forgotten: s.Stats.Forgotten, Retries: s.Stats.Retries, Attached: []attachedJSON{},
	}
	if made := s.Made.UTC(); !made.IsZero() {
		out.Made = &made
	}
	for _, tier := range s.Policies[1:] {
		out.Tiers = append(out.Tiers, tier.String())
	}
	for _, o := range s.Options {
		out.Options[o.Name] = o.Value
	}
	for _, p := range s.Attached {
		out.Attached = append(out.Attached, attachedJSON{p.Seat, p.PID, p.For.Seconds()})
	}
	return json.NewEncoder(w).Encode(out)
}
