package admin

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/admin/browsertest"
	"github.com/weir-go/weir/engine"
)

// TestALostFileIsShown: the page and a metric report that the file of a table is missing.
func TestALostFileIsShown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	l, err := engine.New(engine.FixedWindow(2, time.Hour), engine.MaxKeys(100), engine.Shared(path))
	require.NoError(t, err)
	defer l.Close()
	rule := Rule{Name: "files", Limiter: l, Parts: []string{"ip"}, Buckets: Local(l, func(parts []string) engine.Key {
		return l.Key(parts[0])
	})}
	a := start(t, Config{Rules: func() []Rule { return []Rule{rule} }, Keys: KeysOff})
	server := httptest.NewServer(a.Handler())
	t.Cleanup(server.Close)
	t.Cleanup(func() { a.Close() })
	metric := func() string {
		w := httptest.NewRecorder()
		a.Handler().ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/metrics", nil))
		return w.Body.String()
	}
	shows := func(yes bool) string {
		const text = `"its file was removed or replaced: who starts now counts in another one"`
		has := `document.querySelector(".rule").textContent.includes(` + text + `)`
		if yes {
			return has
		}
		return "!" + has
	}
	b := browsertest.New(t)
	b.Do(chromedp.Navigate(server.URL))
	b.Until(`document.querySelectorAll(".rule").length === 1`)
	b.Until(shows(false))
	assert.Contains(t, metric(), `weir_table_file_lost{rule="files"} 0`)
	require.NoError(t, os.Rename(path, path+"~"))
	l.Sweep()
	a.tick(time.Now())
	assert.Contains(t, metric(), `weir_table_file_lost{rule="files"} 1`)
	b.Until(shows(true))
	require.NoError(t, os.Rename(path+"~", path))
	l.Sweep()
	a.tick(time.Now())
	assert.Contains(t, metric(), `weir_table_file_lost{rule="files"} 0`)
	b.Until(shows(false))
	b.NoProblems()
}
