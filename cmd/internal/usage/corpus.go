package usage

import (
	"embed"
	"encoding/json"
	"path"
)

// A Fixture is an answer of one of the APIs, with its cost.
type Fixture struct {
	File        string
	API         string
	Path        string // path of the request; if it names a model, the name is "tiny"
	ContentType string `json:"content_type"`
	Known       bool   // the answer has a usage
	Final       bool   // the answer reports its complete usage
	UsageChunk  bool   `json:"usage_chunk"` // the usage is in an event for clients that have asked for it
	Reported    struct {
		Input, Output, Total, Cached uint64
		CacheWrite                   uint64 `json:"cache_write"`
		NoInput                      bool   `json:"no_input"`
	} `json:"usage"`
	Body []byte `json:"-"`
}

// Usage returns the usage that the answer reports.
func (f *Fixture) Usage() Usage {
	u := f.Reported
	return Usage{Input: u.Input, Output: u.Output, Total: u.Total, Cached: u.Cached, CacheWrite: u.CacheWrite, NoInput: u.NoInput}
}

//go:embed testdata/corpus
var corpusFiles embed.FS

// Corpus returns the answers that are compiled into the program. They are from all APIs. Corpus panics if a file is
// missing.
func Corpus() (fixtures []*Fixture) {
	read := func(name string) []byte {
		text, err := corpusFiles.ReadFile(path.Join("testdata", "corpus", name))
		if err != nil {
			panic(err)
		}
		return text
	}
	if err := json.Unmarshal(read("index.json"), &fixtures); err != nil {
		panic(err)
	}
	for _, f := range fixtures {
		f.Body = read(f.File)
	}
	return fixtures
}
