package main

import (
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// light are the modules that importers of the root module may get with it: what it requires,
// and what testify does.
var light = []string{
	"github.com/cespare/xxhash/v2", "golang.org/x/sys", "github.com/stretchr/testify", "go.yaml.in/yaml/v3",
}

// An importer is a program that imports a package of the repository.
type importer struct {
	module  string // that it gets, below the root's path
	program string
	prints  string
	light   bool // that it may get nothing but the modules of that name
}

// importers are what strangers write first. They name as little as they can of what may change.
var importers = []importer{
	{"engine", `
import (
	"fmt"

	"github.com/weir-go/weir/engine"
)

func main() {
	limiter, err := engine.New(engine.TokenBucket(engine.PerHour(1), 1))
	if err != nil {
		panic(err)
	}
	defer limiter.Close()
	fmt.Println(limiter.Allow("k"), limiter.Allow("k"))
}
`, "true false", true},
	{"httplimit", `
import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

func main() {
	limiter, err := engine.New(engine.TokenBucket(engine.PerHour(1), 1))
	if err != nil {
		panic(err)
	}
	defer limiter.Close()
	limits, err := httplimit.New([]httplimit.Limit{{Name: "default", Limiter: limiter}})
	if err != nil {
		panic(err)
	}
	for range 2 {
		w := httptest.NewRecorder()
		limits.Handler(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Print(w.Code, " ")
	}
}
`, "404 429 ", true},
	{"redislimit", `
import _ "github.com/weir-go/weir/redislimit"

func main() {}
`, "", false},
	{"grpclimit", `
import _ "github.com/weir-go/weir/grpclimit"

func main() {}
`, "", false},
	{"grpclimit/connectlimit", `
import _ "github.com/weir-go/weir/grpclimit/connectlimit"

func main() {}
`, "", false},
	{"limitertest", `
import _ "github.com/weir-go/weir/limitertest"

func main() {}
`, "", false},
	{"limitertest/check", `
import _ "github.com/weir-go/weir/limitertest/check"

func main() {}
`, "", false},
	{"otellimit", `
import _ "github.com/weir-go/weir/otellimit"

func main() {}
`, "", false},
	{"otellimit/otelredis", `
import _ "github.com/weir-go/weir/otellimit/otelredis"

func main() {}
`, "", false},
}

// A stranger is an empty machine that knows the tree by a module proxy only. What is not of the
// repository comes from the module cache of this machine, or from where that gets it.
type stranger struct {
	folder      string
	environment []string
	root        string // module path
	version     string
	out         io.Writer
}

// check publishes the tree to a module proxy of files and imports and installs it from there.
func check(t *tree, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "weir-release-check-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	proxy := filepath.Join(folder, "proxy")
	if err := t.writeProxy(proxy, t.version); err != nil {
		return err
	}
	s, err := newStranger(t, folder, "file://"+proxy, out)
	if err != nil {
		return err
	}
	return s.tryAll()
}

// newStranger returns a stranger to whom the proxies come first.
func newStranger(t *tree, folder, proxies string, out io.Writer) (*stranger, error) {
	usual, err := command(folder, []string{"GOWORK=off"}, "go", "env", "GOPROXY", "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	proxy, cache, _ := strings.Cut(usual, "\n")
	root := t.modules[0].path
	return &stranger{
		folder: folder,
		environment: []string{
			"GOWORK=off", "GOFLAGS=-trimpath -modcacherw", "CGO_ENABLED=0",
			// A cache of its own, so that what is not published gets into no other.
			"GOMODCACHE=" + filepath.Join(folder, "cache"), "GOBIN=" + filepath.Join(folder, "bin"),
			"GOPROXY=" + proxies + ",file://" + filepath.ToSlash(filepath.Join(cache, "cache", "download")) + "," +
				proxy,
			"GONOSUMDB=" + root, // which no checksum database knows
		},
		root: root, version: t.version, out: out,
	}, nil
}

func (s *stranger) tryAll() error {
	for _, i := range importers {
		if err := s.try(i); err != nil {
			return fmt.Errorf("an importer of %s: %w", i.module, err)
		}
	}
	for _, program := range []string{"cmd/weir", "cmd/weir-envoy"} {
		if err := s.install(program); err != nil {
			return err
		}
	}
	return nil
}

// try writes the importer into an empty module, gets the package, builds the program and runs it.
func (s *stranger) try(i importer) error {
	folder := filepath.Join(s.folder, i.module)
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "main.go"), []byte("package main\n"+i.program), 0o644); err != nil {
		return err
	}
	path := s.root + "/" + i.module
	for _, args := range [][]string{
		{"mod", "init", "example.com/importer"},
		{"get", path + "@" + s.version},
		{"vet", "./..."},
	} {
		if _, err := command(folder, s.environment, "go", args...); err != nil {
			return err
		}
	}
	printed, err := command(folder, s.environment, "go", "run", ".")
	if err != nil {
		return err
	}
	if printed != i.prints {
		return fmt.Errorf("it prints %q, want %q", printed, i.prints)
	}
	graph, err := command(folder, s.environment, "go", "mod", "graph")
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s@%s: builds and runs, %d lines of go mod graph\n", path, s.version,
		strings.Count(graph, "\n")+1)
	if !i.light {
		return nil
	}
	if i.module == "engine" {
		fmt.Fprintln(s.out, "  "+strings.ReplaceAll(graph, "\n", "\n  "))
	}
	return heavy(graph, s.root)
}

// heavy fails if the module graph of an importer holds a module that the root module may not
// bring: one that it requires itself and that is not light. What the light ones require cannot
// be avoided.
func heavy(graph, root string) error {
	name := func(version string) string { before, _, _ := strings.Cut(version, "@"); return before }
	for line := range strings.Lines(graph) {
		who, what, found := strings.Cut(strings.TrimSpace(line), " ")
		if !found {
			return fmt.Errorf("go mod graph prints %q", line)
		}
		required := name(what)
		if name(who) == root && required != "go" && required != "toolchain" && !slices.Contains(light, required) {
			return fmt.Errorf("%s requires %s: importers get it, too; only %s are meant to be required", who, what,
				light)
		}
	}
	return nil
}

// install installs a program and asks it for its version.
func (s *stranger) install(folder string) error {
	program := path.Base(folder)
	installed := s.root + "/" + folder + "@" + s.version
	if _, err := command(s.folder, s.environment, "go", "install", installed); err != nil {
		return err
	}
	printed, err := command(s.folder, nil, filepath.Join(s.folder, "bin", program), "--version")
	if err != nil {
		return err
	}
	if !strings.HasPrefix(printed, program+" "+s.version+"\n") {
		return fmt.Errorf("%s says of its version %q", installed, printed)
	}
	fmt.Fprintf(s.out, "%s: installed\n  %s\n", installed, strings.ReplaceAll(printed, "\n", "\n  "))
	return nil
}
