package listen

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A noting is a connection that notes each deadline that is set. Its Read calls the function in the field during.
type noting struct {
	streamConn
	set    []time.Time
	during func()
}

func (c *noting) SetReadDeadline(t time.Time) error { c.set = append(c.set, t); return nil }
func (c *noting) Read([]byte) (int, error)          { c.during(); return 0, io.EOF }

// TestADeadlineIsSetWhenItIsNeeded: a read uses the last deadline, and a read in progress gets a new deadline at once.
func TestADeadlineIsSetWhenItIsNeeded(t *testing.T) {
	var r receiver
	first, second, third := time.Unix(1, 0), time.Unix(2, 0), time.Unix(3, 0)
	conn := &noting{during: func() {}}
	read := func() {
		_, err := r.read(conn, nil)
		require.ErrorIs(t, err, io.EOF)
	}
	require.NoError(t, r.setDeadline(conn, first))
	require.NoError(t, r.setDeadline(conn, second))
	assert.Empty(t, conn.set, "no read needs it")
	read()
	assert.Equal(t, []time.Time{second}, conn.set)
	read()
	assert.Equal(t, []time.Time{second}, conn.set, "it is set already")
	conn.during = func() {
		require.NoError(t, r.setDeadline(conn, third))
		assert.Equal(t, []time.Time{second, third}, conn.set)
	}
	read()
	require.NoError(t, r.setDeadline(conn, time.Time{}))
	conn.during = func() { assert.Equal(t, []time.Time{second, third, {}}, conn.set, "no deadline is a deadline, too") }
	read()
}
