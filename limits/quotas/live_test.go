package quotas_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/quotas"
)

// TestFollow: a table that cannot be read does not replace the previous one, and each error is reported once.
func TestFollow(t *testing.T) {
	in := reader(t)
	read := func(texts ...string) quotas.Source {
		return func(context.Context) (*quotas.Table, error) { return in.Pairs(pairs(texts...)) }
	}
	fails := func(text string) quotas.Source {
		return func(context.Context) (*quotas.Table, error) { return nil, errors.New(text) }
	}
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Pointer[quotas.Source]
		is := func(s quotas.Source) { now.Store(&s) }
		is(read("anna", "free"))
		l, err := quotas.Open(t.Context(), func(ctx context.Context) (*quotas.Table, error) { return (*now.Load())(ctx) })
		require.NoError(t, err)
		var mu sync.Mutex
		var tables []*quotas.Table
		var errs []error
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go l.Follow(ctx, time.Minute, func(t *quotas.Table, err error) {
			mu.Lock()
			defer mu.Unlock()
			tables, errs = append(tables, t), append(errs, err)
		})
		// until lets time pass, and returns anna's limit, the number of reports in that time, and the last error.
		until := func(d time.Duration) (p engine.Policy, told int, last error) {
			mu.Lock()
			tables, errs = nil, nil
			mu.Unlock()
			time.Sleep(d)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			p, _ = l.Of("anna")
			if len(errs) > 0 {
				last = errs[len(errs)-1]
			}
			for i := range tables {
				assert.Equal(t, errs[i] == nil, tables[i] == l.Table())
			}
			return p, len(tables), last
		}
		time.Sleep(time.Second)
		first := l.Table()
		p, told, _ := until(10 * time.Minute)
		assert.Equal(t, free, p)
		assert.Zero(t, told)
		assert.Same(t, first, l.Table())

		is(read("anna", "paid"))
		p, told, _ = until(10 * time.Minute)
		assert.Equal(t, paid, p)
		assert.Equal(t, 1, told)

		is(fails("gone"))
		p, told, err = until(10 * time.Minute)
		assert.Equal(t, paid, p)
		assert.Equal(t, 1, told)
		assert.EqualError(t, err, "gone")
		is(read("anna", "gold"))
		_, told, err = until(10 * time.Minute)
		assert.Equal(t, 1, told)
		assert.ErrorContains(t, err, `"gold"`)
		is(read()) // a table without keys cannot be read
		p, _, err = until(time.Minute)
		assert.Equal(t, paid, p)
		assert.ErrorContains(t, err, "no keys")

		is(read("anna", "paid"))
		p, told, err = until(10 * time.Minute) // the end of the error is reported
		assert.Equal(t, paid, p)
		assert.Equal(t, 1, told)
		require.NoError(t, err)
		is(func(context.Context) (*quotas.Table, error) { return nil, nil })
		p, told, _ = until(10 * time.Minute)
		assert.Equal(t, paid, p)
		assert.Zero(t, told)
		is(read("anna", "paid", "berta", "free"))
		_, told, _ = until(time.Minute)
		assert.Equal(t, 1, told)
		is(read("anna", "free", "berta", "paid"))
		p, told, _ = until(time.Minute)
		assert.Equal(t, free, p)
		assert.Equal(t, 1, told)
		cancel()
		is(read("anna", "paid"))
		p, told, _ = until(10 * time.Minute)
		assert.Equal(t, free, p)
		assert.Zero(t, told)
	})
	_, err := quotas.Open(t.Context(), fails("gone"))
	assert.EqualError(t, err, "gone")
}

// TestFileReader: a file is read again if it has changed or may have changed.
func TestFileReader(t *testing.T) {
	name := filepath.Join(t.TempDir(), "plans.csv")
	var f quotas.FileReader
	old := time.Now().Add(-time.Hour)
	write := func(text string, at time.Time) {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		require.NoError(t, os.Chtimes(name, at, at))
	}
	_, err := f.Read(reader(t), name)
	require.ErrorIs(t, err, os.ErrNotExist)
	write("anna,free\n", old)
	table, err := f.Read(reader(t), name)
	require.NoError(t, err)
	has(t, table, map[string]engine.Policy{"anna": free})
	table, err = f.Read(reader(t), name)
	require.NoError(t, err)
	assert.Nil(t, table)

	write("anna,paid\n", old.Add(time.Second)) // the new content has the same size
	table, err = f.Read(reader(t), name)
	require.NoError(t, err)
	has(t, table, map[string]engine.Policy{"anna": paid})
	write("anna,gold\n", old.Add(2*time.Second))
	for range 2 {
		_, err = f.Read(reader(t), name)
		require.ErrorContains(t, err, `line 1: "gold"`)
	}
	require.NoError(t, os.Remove(name))
	_, err = f.Read(reader(t), name)
	require.ErrorIs(t, err, os.ErrNotExist)
	write("anna,free\n", old.Add(2*time.Second))
	table, err = f.Read(reader(t), name)
	require.NoError(t, err)
	has(t, table, map[string]engine.Policy{"anna": free})

	// A file that has just changed may change again without a new time stamp.
	write("anna,paid\n", time.Now())
	for range 2 {
		table, err = f.Read(reader(t), name)
		require.NoError(t, err)
		has(t, table, map[string]engine.Policy{"anna": paid})
	}
}
