package docs

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These are the largest sizes of parts of the code, except tests. Structs with exported fields are configurations and
// reports, so only unexported fields count.
const (
	mostLines         = 400 // lines of a file
	mostFunctionLines = 60
	mostFields        = 10 // unexported fields of a struct
)

// larger lists the parts that may be larger, each with its size and the reason.
var larger = map[string]struct {
	most int
	why  string
}{
	"fuzz/explore/scenarios.go": {460, "one list of scenarios"},
	"shard/doc.go":              {451, "the rules of the protocol, which are read as one text"},

	"fuzz/explore/invariants.go checkCall":              {76, "one case for each verb"},
	"fuzz/explore/scenario.go perform":                  {66, "one case for each verb"},
	"fuzz/explore/shadowbucket.go charge":               {63, "one law, as it is written down"},
	"fuzz/mutate/mutations.go visit":                    {62, "one case for each kind of node"},
	"redislimit/internal/script/model.go slidingWindow": {64, "the script of the store line by line, to be compared"},
	"redislimit/overshoot/run.go Run":                   {74, "the stages of one run in their order"},
	"redislimit/sim/table.go WriteTable":                {69, "one table, column by column"},
	"shard/insert.go insert":                            {87, "one protocol: rules stand at its steps, and mutants quote them"},
	"shard/insert.go settle":                            {78, "one protocol: rules stand at its steps, and mutants quote them"},

	"cmd/internal/accesslog/file.go file":            {15, "what a reader of one log keeps between lines"},
	"cmd/internal/accesslog/log.go Log":              {14, "what a reader of several logs keeps between lines"},
	"cmd/internal/accesslog/stamp.go stamp":          {11, "the parts of a date"},
	"cmd/internal/envoy/service.go check":            {25, "what a request has found out so far, on the stack, so that it does not allocate"},
	"cmd/internal/metering/meter.go State":           {11, "what is known of one answer"},
	"cmd/internal/resp/conn.go conn":                 {18, "a connection: its buffers, what the client has set, and a batch that is reused"},
	"cmd/internal/rulefile/table.go entry":           {12, "a row of the table of keys"},
	"cmd/internal/serve/server.go Server":            {14, "a server: its sockets, its generations and what outlives them"},
	"cmd/internal/usage/frames.go frames":            {16, "a state machine over bytes"},
	"cmd/internal/usage/json.go document":            {17, "a state machine over bytes"},
	"engine/option.go config":                        {15, "what the options set"},
	"fuzz/explore/scenario.go scenario":              {20, "a row of the list of scenarios"},
	"fuzz/explore/scenario.go call":                  {11, "a call of a scenario"},
	"fuzz/explore/shadow.go owner":                   {11, "what is true of a key, against which the table is held"},
	"fuzz/explore/thread.go thread":                  {20, "where a thread stands in its program"},
	"fuzz/explore/world.go world":                    {23, "everything that an execution changes"},
	"fuzz/mutate/main.go options":                    {13, "the flags of the program"},
	"fuzz/mutate/mutations.go mutation":              {11, "a row of the list of mutations"},
	"fuzz/mutate/score.go score":                     {12, "the columns of a table"},
	"grpclimit/connectlimit/stream.go clientConn":    {12, "a stream between two sides, either of which may end it"},
	"httplimit/reading/parsed.go parsedPath":         {12, "one path by all its readings"},
	"limitertest/check/model.go bucket":              {12, "one law, with all that a limiter may do differently"},
	"limits/result.go Check":                         {13, "what a limit has decided, without allocating"},
	"redislimit/client.go Client":                    {13, "the connections to a store, and how it fares"},
	"redislimit/client.go clientConfig":              {12, "what the options set"},
	"redislimit/internal/lease/lease.go Lease":       {19, "one protocol: the words of a lease, on lines of their own"},
	"redislimit/internal/redistest/server.go Server": {13, "a server of tests and what it was told"},
	"redislimit/internal/script/limit.go Limit":      {13, "the numbers that go to a script"},
	"redislimit/internal/script/model.go Model":      {11, "the state of a store, for comparison"},
	"redislimit/option.go config":                    {11, "what the options set"},
	"redislimit/limiter.go Limiter":                  {21, "the parts of a limiter, most of which are types of their own"},
	"shard/plan.go Plan":                             {23, "the numbers that a take reads, in one line of memory where it can be"},
	"shard/table.go Table":                           {29, "the words of a table, grouped by who writes them"},
}

// TestNothingIsTooLarge: the list above has exactly the parts that are larger than the sizes above.
func TestNothingIsTooLarge(t *testing.T) {
	seen := map[string]bool{}
	check := func(name string, size, most int, unit string) {
		if size <= most {
			return
		}
		seen[name] = true
		if is, ok := larger[name]; ok {
			most = is.most
		}
		assert.LessOrEqual(t, size, most, "%s has %d %s: divide it, or say in sizes_test.go why it is one", name, size, unit)
	}
	files := 0
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && path == filepath.Join("..", "bin") { // what was built, such as a site
			return filepath.SkipDir
		}
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))
		check(name, bytes.Count(text, []byte("\n")), mostLines, "lines")
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				check(name+" "+n.Name.Name, set.Position(n.End()).Line-set.Position(n.Pos()).Line+1, mostFunctionLines, "lines")
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					check(name+" "+n.Name.Name, unexported(s), mostFields, "fields")
				}
			}
			return true
		})
		return nil
	}))
	require.Greater(t, files, 500, "nothing was looked at")
	for name := range larger {
		assert.True(t, seen[name], "%s is no larger than the others: take it off the list", name)
	}
}

// unexported returns the number of a struct's fields that other packages do not see, without padding.
func unexported(s *ast.StructType) (n int) {
	for _, field := range s.Fields.List {
		for _, name := range field.Names {
			if !name.IsExported() && name.Name != "_" {
				n++
			}
		}
	}
	return n
}
