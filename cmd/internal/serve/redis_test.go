package serve

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

func redisFile(more string) string {
	return "redis: {address: \"127.0.0.1:0\", max_keys: 100" + more + "}\n"
}

func startRedis(t *testing.T, text string) *running {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return startAt(t, path)
}

func (r *running) rewrite(text string) {
	r.t.Helper()
	require.NoError(r.t, os.WriteFile(r.path+"~", []byte(text), 0o600))
	require.NoError(r.t, os.Rename(r.path+"~", r.path))
	require.NoError(r.t, r.Reload())
}

func (r *running) redisAddress() string {
	return strings.TrimSuffix(regexp.MustCompile("^rediss?://").ReplaceAllString(r.urlOf(redisClients), ""), "/")
}

func dialRedis(t *testing.T, address string) net.Conn {
	t.Helper()
	network := "tcp"
	if strings.HasPrefix(address, "/") {
		network = "unix"
	}
	c, err := net.Dial(network, address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	return c
}

// says sends one command and returns its one-line answer.
func says(t *testing.T, c net.Conn, command string) string {
	t.Helper()
	_, err := io.WriteString(c, command+"\r\n")
	require.NoError(t, err)
	answer := make([]byte, 1000)
	n, err := c.Read(answer)
	require.NoError(t, err)
	return strings.TrimSpace(strings.ReplaceAll(string(answer[:n]), "\r\n", " "))
}

const (
	takes   = "CL.THROTTLE a 1 1 3600"
	first   = "*5 :0 :2 :1 :-1 :3600"
	second  = "*5 :0 :2 :0 :-1 :7200"
	refused = "*5 :1 :2 :0 :3600 :7200"
)

// TestAReloadKeepsConnectionsAndKeysOfRedis: the connections and the keys of Redis clients outlive a reload. A new
// password is needed only for new connections.
func TestAReloadKeepsConnectionsAndKeysOfRedis(t *testing.T) {
	s := startRedis(t, redisFile(""))
	c := dialRedis(t, s.redisAddress())
	assert.Equal(t, first, says(t, c, takes))
	s.rewrite(redisFile(", idle_timeout: 1h"))
	assert.Contains(t, s.log.String(), "reload: the listener for clients of Redis changes")
	assert.Equal(t, second, says(t, c, takes))
	assert.Equal(t, refused, says(t, dialRedis(t, s.redisAddress()), takes))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(s.path), "password"), []byte("old\n"), 0o600))
	s.rewrite(redisFile(", password_file: password"))
	assert.Equal(t, refused, says(t, c, takes), "a connection that needed none")
	other := dialRedis(t, s.redisAddress())
	assert.Equal(t, "-NOAUTH Authentication required.", says(t, other, takes))
	assert.Equal(t, "+OK", says(t, other, "AUTH old"))

	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(s.path), "password"), []byte("new\n"), 0o600))
	require.Eventually(t, func() bool { // because the file is watched
		return says(t, dialRedis(t, s.redisAddress()), "AUTH new") == "+OK"
	}, time.Minute, 10*time.Millisecond)
	assert.Equal(t, "+PONG", says(t, other, "PING"))

	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(s.path), "password"), []byte("\n"), 0o600))
	s.waitFor("0 passwords: want 1 to 16, one on each line")
	assert.Equal(t, "+OK", says(t, dialRedis(t, s.redisAddress()), "AUTH new"), "everything stays as it was")

	s.rewrite("redis: {address: \"127.0.0.1:0\", max_keys: 101}\n")
	assert.Contains(t, s.log.String(), "reload: redis: it has a new table, because max_keys was 100 and is 101; what keys have used still counts")
	assert.Equal(t, refused, says(t, c, takes))
}

// TestNamedLimitsOfEveryAlgorithm: in every command, each named limit has keys of its own. This is also true after a
// reload.
func TestNamedLimitsOfEveryAlgorithm(t *testing.T) {
	limits := func(n int) string {
		return redisFile(fmt.Sprintf(", limits: {fixed: {rate: %[1]d/h, algorithm: fixed-window}, sliding: {rate: %[1]d/h, algorithm: sliding-window}, "+
			"log: {rate: %[1]d/h, algorithm: sliding-log}, batch: {rate: %[1]d/h, algorithm: batch-refill}, "+
			"month: {rate: %[1]d/month, algorithm: fixed-window, zone: UTC}, bucket: %[1]d/h}", n))
	}
	names := []string{"fixed", "sliding", "log", "batch", "month", "bucket"}
	s := startRedis(t, limits(3))
	c := dialRedis(t, s.redisAddress())
	has := func(want, command, name string) {
		t.Helper()
		assert.Regexp(t, "^"+strings.ReplaceAll(want, "%", name), says(t, c, strings.ReplaceAll(command, "%", name)), name)
	}
	for _, name := range names {
		has(`\*5 :0 :3 :2 :-1 `, "CL.THROTTLE a %", name)
		has(`\*5 :0 :3 :2 :-1 `, "CL.THROTTLE a % 0", name)
		has(`\*10 \$7 allowed :1 \$5 limit :3 \$9 remaining :0 `, "WEIR.TAKE a LIMIT % COST 2", name)
		has(`\*5 :1 :3 :0 :\d+ :\d+$`, "CL.THROTTLE a %", name)
		has(`\*10 \$7 allowed :0 `, "WEIR.PEEK a LIMIT %", name)
		has(`\*10 \$7 allowed :1 \$5 limit :3 \$9 remaining :1 `, "WEIR.REFUND a LIMIT %", name)
		has(`\*12 \$7 allowed :0 \$5 limit :3 \$9 remaining :0 `, "WEIR.CHARGE a LIMIT %", name)
		has(":1", "EXISTS %:a", name)
		has(`:[1-9]\d*`, "TTL %:a", name)
		has(`\*5 :0 :3 :2 :-1 `, "CL.THROTTLE b %", name)
		has(":1", "DEL %:b", name)
		has(":0", "EXISTS %:b", name)
		has(":-2", "TTL %:b", name)
		has("-ERR BURST: the limit '%' has the burst of the rule file", "WEIR.TAKE a LIMIT % BURST 3", name)
	}
	has(":0", "EXISTS a fixed b", "")
	has(`\*4 \$7 allowed :0 `, "WEIR.TAKEALL 6 c c c c c a "+strings.Join(strings.Fields("LIMIT fixed LIMIT sliding LIMIT log LIMIT batch LIMIT month LIMIT bucket"), " "), "")
	for _, name := range names {
		has(`\*5 :0 :3 :3 `, "CL.THROTTLE c % 0", name)
	}

	s.rewrite(limits(5))
	for _, name := range names {
		has(`\*5 :0 :5 :0 :-1 `, "CL.THROTTLE a % 2", name)
	}
	s.rewrite(strings.Replace(limits(5), "algorithm: fixed-window}", "algorithm: sliding-log}", 1))
	has(`\*5 :1 :5 :0 `, "CL.THROTTLE a fixed", "")
	s.rewrite(redisFile(""))
	has("-ERR no limit 'fixed'", "CL.THROTTLE a fixed", "")
	has(":0", "EXISTS fixed:a", "")
}

// TestABucketThatBecomesAnotherLimit: if a token bucket becomes another algorithm, debts count until they are paid.
// This includes debts in an earlier table.
func TestABucketThatBecomesAnotherLimit(t *testing.T) {
	const window = ", limits: {login: {rate: 2/h, algorithm: sliding-window}}"
	for _, algorithm := range []string{"fixed-window", "sliding-window", "sliding-log", "batch-refill"} {
		t.Run(algorithm, func(t *testing.T) {
			window := strings.Replace(window, "sliding-window", algorithm, 1)
			s := startRedis(t, redisFile(", limits: {login: 2/h}"))
			c := dialRedis(t, s.redisAddress())
			assert.Contains(t, says(t, c, "WEIR.CHARGE a LIMIT login COST 15"), "lost :0") // full after 7.5 hours
			assert.Contains(t, says(t, c, "WEIR.TAKE b LIMIT login COST 2"), "allowed :1")
			s.rewrite(redisFile(window))
			for hour := range 4 { // in each hour, two tokens come back to the bucket, and two to the limit
				for range 130 { // so that tables in which no key owes anything are dropped
					assert.Contains(t, says(t, c, "CL.THROTTLE a login"), "*5 :1 :2 :0", hour)
				}
				s.clock.advance(time.Hour)
			}
			assert.Contains(t, says(t, c, "CL.THROTTLE b login"), "*5 :0 :2 :1")
		})
	}
	s := startRedis(t, redisFile(", limits: {login: 2/h}"))
	c := dialRedis(t, s.redisAddress())
	assert.Contains(t, says(t, c, "WEIR.TAKE a LIMIT login COST 2"), "allowed :1")
	s.rewrite(strings.Replace(redisFile(", limits: {login: 2/h}"), "max_keys: 100", "max_keys: 200", 1))
	s.rewrite(strings.Replace(redisFile(window), "max_keys: 100", "max_keys: 200", 1))
	assert.Contains(t, says(t, c, "CL.THROTTLE a login"), "*5 :1 :2 :0")
}

// TestABucketOfTheGenerationBefore: while the previous generation still decides by a token bucket, the debts stay in
// its table. If the reload fails, nothing changes.
func TestABucketOfTheGenerationBefore(t *testing.T) {
	s := startRedis(t, redisFile(", limits: {login: 2/h}"))
	c := dialRedis(t, s.redisAddress())
	assert.Contains(t, says(t, c, "WEIR.TAKE a LIMIT login COST 2"), "allowed :1")
	before := s.enter()
	owed := func() uint64 {
		n, _ := before.redisTable.Owed(before.redisTable.KeyBytes([]byte("login:a")))
		return n
	}
	require.EqualValues(t, 2, owed())
	window := redisFile(", limits: {login: {rate: 2/h, algorithm: sliding-window}}")
	require.NoError(t, os.WriteFile(s.path, []byte(window+"listen: 127.0.0.1:0\nrules: [{name: a, rate: 1/s, quota: {file: none.csv}}]\n"), 0o600))
	for range 6 {
		require.ErrorContains(t, s.Reload(), "none.csv")
	}
	assert.Contains(t, says(t, c, "CL.THROTTLE a login"), "*5 :1 :2 :0")
	s.rewrite(window)
	for range 2 {
		assert.Contains(t, says(t, c, "CL.THROTTLE a login"), "*5 :1 :2 :0")
		assert.EqualValues(t, 2, owed())
	}
	before.leave()
	assert.Contains(t, says(t, c, "CL.THROTTLE a login"), "*5 :1 :2 :0")
	assert.Zero(t, owed())
}

// TestHoldsOfNamedLimits: a hold of any algorithm can be settled after a reload. If the limit was removed, settling it
// gives an error.
func TestHoldsOfNamedLimits(t *testing.T) {
	limits := func(n int) string {
		return redisFile(fmt.Sprintf(", limits: {fixed: {rate: %[1]d/h, algorithm: fixed-window}, sliding: {rate: %[1]d/h, algorithm: sliding-window}, bucket: %[1]d/h}", n))
	}
	s := startRedis(t, limits(10))
	c := dialRedis(t, s.redisAddress())
	hold := func() string {
		said := strings.Fields(says(t, c, "WEIR.HOLDALL 3 a a a LIMIT fixed COST 6 LIMIT sliding COST 6 LIMIT bucket COST 6"))
		require.Equal(t, []string{"*6", "$2", "id"}, said[:3])
		return said[4]
	}
	left := func() (all string) {
		for _, name := range []string{"fixed", "sliding", "bucket"} {
			all += " " + strings.Fields(says(t, c, "CL.THROTTLE a "+name+" 0"))[3]
		}
		return all
	}
	first := hold()
	assert.Equal(t, " :4 :4 :4", left())
	assert.Equal(t, "*4 $7 outcome $7 settled $4 lost :0", says(t, c, "WEIR.SETTLE "+first+" 2"))
	assert.Equal(t, " :8 :8 :8", left())
	second := hold()
	s.rewrite(limits(12))
	assert.Equal(t, " :4 :4 :4", left())
	assert.Equal(t, "*4 $7 outcome $7 settled $4 lost :0", says(t, c, "WEIR.SETTLE "+second+" 7"))
	assert.Equal(t, " :3 :3 :3", left())
	assert.Equal(t, "*4 $7 outcome $8 repeated $4 lost :0", says(t, c, "WEIR.SETTLE "+second+" 1"))
	assert.Contains(t, says(t, c, "WEIR.HOLD b LIMIT sliding COST 3"), "$7 allowed :1")
	third := strings.Fields(says(t, c, "WEIR.HOLD b LIMIT sliding COST 3"))[4]
	s.rewrite(redisFile(""))
	assert.Equal(t, "-ERR the limit 'sliding' is no longer in the rule file, or has become a token bucket", says(t, c, "WEIR.SETTLE "+third+" 1"))
	s.rewrite(limits(12))
	assert.Contains(t, says(t, c, "WEIR.SETTLE "+third+" 1"), "outcome", "the id is good again")
}

// TestNamedLimitsOfRedis: named limits have the numbers in the file. After a reload, tokens that were used still count.
// A limit per month does not need the key longest.
func TestNamedLimitsOfRedis(t *testing.T) {
	s := startRedis(t, redisFile(", limits: {login: 2/h}"))
	c := dialRedis(t, s.redisAddress())
	assert.Equal(t, "*5 :0 :2 :0 :-1 :3600", says(t, c, "CL.THROTTLE a login 2"))
	s.rewrite(redisFile(", limits: {login: {rate: 2/h, burst: 3}, month: 1000/60d}"))
	assert.Equal(t, "*5 :0 :3 :0 :-1 :5400", says(t, c, "CL.THROTTLE a login"))
	assert.Equal(t, "*5 :0 :1000 :999 :-1 :5184", says(t, c, "CL.THROTTLE a month"))
	assert.Contains(t, s.log.String(), "it has a new table, because longest was 624h0m0s and is 1440h0m0s; what keys have used still counts")
	assert.Equal(t, "+OK", says(t, c, "MULTI"))
	assert.Equal(t, "+QUEUED", says(t, c, "CL.THROTTLE a login"))
	s.rewrite(redisFile(", limits: {month: 1000/60d}"))
	assert.Equal(t, "*1 -ERR no limit 'login': want one of redis: limits of the rule file, or a rate such as 100/m", says(t, c, "EXEC"))
	s.rewrite(redisFile(", limits: {login: 2/h, month: 1000/60d}"))
	assert.Equal(t, "*5 :1 :2 :0 :3600 :5400", strings.Replace(says(t, c, "CL.THROTTLE a login"), ":3601", ":3600", 1), "what was used is not forgotten")
}

// TestKeysOfRedisMoveToANewTable: when a command uses a key, the key moves to the new table. It also moves if its limit
// did not fit the previous table. A reset also resets the key in the previous table.
func TestKeysOfRedisMoveToANewTable(t *testing.T) {
	file := "redis: {address: \"127.0.0.1:0\", max_keys: %d, longest: %s}\n"
	for name, c := range map[string]struct{ take, after, want string }{
		"take":      {takes, takes, refused},
		"peek":      {"CL.THROTTLE a 1 1 3600", "WEIR.PEEK a LIMIT 1/h BURST 2", "*10 $7 allowed :0 $5 limit :2 $9 remaining :0 $11 retry_after $4 3600 $11 reset_after $4 7200"},
		"no tokens": {takes, takes + " 0", "*5 :0 :2 :0 :-1 :7200"},
		"charge":    {takes, "WEIR.CHARGE a LIMIT 1/h BURST 2", "*12 $7 allowed :0 $5 limit :2 $9 remaining :0 $11 retry_after $4 7200 $11 reset_after $5 10800 $4 lost :0"},
		"refund":    {takes, "WEIR.REFUND a LIMIT 1/h BURST 2", "*10 $7 allowed :1 $5 limit :2 $9 remaining :1 $11 retry_after $1 0 $11 reset_after $4 3600"},
		"reset":     {"WEIR.CHARGE a LIMIT 1/s BURST 3000 COST 30000", "DEL a b", ":1"},
		"a limit that the previous table could not hold": {takes, "CL.THROTTLE a 0 1 36000", "*5 :1 :1 :0 :72000 :72000"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startRedis(t, fmt.Sprintf(file, 100, "2h"))
			conn := dialRedis(t, s.redisAddress())
			says(t, conn, c.take)
			says(t, conn, c.take)
			s.rewrite(fmt.Sprintf(file, 200, "20h"))
			assert.Equal(t, c.want, says(t, conn, c.after))
			if name == "reset" {
				assert.Equal(t, first, says(t, conn, takes))
			}
		})
	}
}

// TestRedisComesAndGoes: a reload may add or remove the listener for Redis clients. When it is removed, its connections
// end.
func TestRedisComesAndGoes(t *testing.T) {
	s := start(t, one)
	assert.Empty(t, s.urlOf(redisClients))
	s.change(redisFile("") + one)
	c := dialRedis(t, s.redisAddress())
	assert.Equal(t, first, says(t, c, takes))
	assert.Equal(t, "200", s.statuses(1))
	address := s.redisAddress()
	s.change(one)
	_, err := c.Read(make([]byte, 1))
	assert.ErrorIs(t, err, io.EOF)
	_, err = net.Dial("tcp", address)
	assert.Error(t, err)
	assert.Equal(t, "200", s.statuses(1))
	s.change(redisFile("") + one)
	assert.Equal(t, first, says(t, dialRedis(t, s.redisAddress()), takes), "a new table")
}

// TestRedisAtTheEnd: when the server ends, idle Redis connections end at once.
func TestRedisAtTheEnd(t *testing.T) {
	s := startRedis(t, redisFile(""))
	c := dialRedis(t, s.redisAddress())
	assert.Equal(t, "+PONG", says(t, c, "PING"))
	s.stop()
	_, err := c.Read(make([]byte, 1))
	assert.ErrorIs(t, err, io.EOF)
	assert.NotContains(t, s.log.String(), "requests were cut off")
}

func TestTooManyClientsOfRedisAreToldSo(t *testing.T) {
	s := startRedis(t, "server: {max_connections: 2}\n"+redisFile(""))
	held := []net.Conn{dialRedis(t, s.redisAddress()), dialRedis(t, s.redisAddress())}
	for _, c := range held {
		assert.Equal(t, "+PONG", says(t, c, "PING"))
	}
	answer, err := io.ReadAll(io.LimitReader(dialRedis(t, s.redisAddress()), 1<<10))
	require.NoError(t, err)
	assert.Equal(t, "-ERR max number of clients reached\r\n", string(answer))
	assert.Contains(t, s.log.String(), "too many connections: new connections are refused")
	require.NoError(t, held[0].Close())
	require.Eventually(t, func() bool { return s.connections[redisClients].Open() == 1 }, time.Minute, time.Millisecond)
	assert.Equal(t, "+PONG", says(t, dialRedis(t, s.redisAddress()), "PING"))
}

func TestRedisOverTLS(t *testing.T) {
	dir := t.TempDir()
	writeCertificate(t, dir, "door.example.com")
	s := startRedis(t, redisFile(", tls: {cert: "+dir+"/cert.pem, key: "+dir+"/key.pem}"))
	assert.True(t, strings.HasPrefix(s.urlOf(redisClients), "rediss://"))
	secure := func() *tls.Conn {
		return tls.Client(dialRedis(t, s.redisAddress()), &tls.Config{InsecureSkipVerify: true})
	}
	c := secure()
	assert.Equal(t, first, says(t, c, takes))
	assert.Equal(t, "door.example.com", c.ConnectionState().PeerCertificates[0].Subject.CommonName)
	answer, err := io.ReadAll(plainOver(t, s.redisAddress()))
	require.NoError(t, err)
	assert.NotContains(t, string(answer), "PONG", "without TLS")
	writeCertificate(t, dir, "other.example.com")
	require.Eventually(t, func() bool {
		c := secure()
		defer c.Close()
		return c.Handshake() == nil && c.ConnectionState().PeerCertificates[0].Subject.CommonName == "other.example.com"
	}, time.Minute, 10*time.Millisecond)
	assert.Equal(t, second, says(t, c, takes))
}

func plainOver(t *testing.T, address string) net.Conn {
	c := dialRedis(t, address)
	_, err := io.WriteString(c, "PING\r\n")
	require.NoError(t, err)
	return c
}

// TestMetricsOfRedis: there are metrics about Redis clients only if there is a listener for them. The command INFO
// reports some of the same numbers.
func TestMetricsOfRedis(t *testing.T) {
	s := startRedis(t, "admin: 127.0.0.1:0\n"+redisFile(""))
	c := dialRedis(t, s.redisAddress())
	for _, command := range []string{takes, takes, takes, "PING", "FOO", "PING a b", "GCRA a 1 1 0"} {
		says(t, c, command)
	}
	assert.Contains(t, says(t, c, "INFO"), "decisions_allowed:2 decisions_limited:1")
	metrics := s.metrics()
	for _, line := range []string{
		`weir_redis_commands_total{command="cl.throttle"} 3`, `weir_redis_commands_total{command="ping"} 2`,
		`weir_redis_decisions_total{outcome="allowed"} 2`, `weir_redis_decisions_total{outcome="limited"} 1`,
		`weir_redis_errors_total{reason="unknown_command"} 1`, `weir_redis_errors_total{reason="other"} 2`,
		"weir_redis_connections 1", "weir_redis_connections_rejected_total 0", "weir_redis_evictions_total 0",
		"weir_redis_slow_clients_total 0",
	} {
		assert.Contains(t, metrics, line+"\n")
	}
	s.rewrite("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n" + one)
	assert.NotContains(t, s.metrics(), "weir_redis_")
}

// TestMetricsOfNamedLimits: the metrics include named limits. They do not fall when the table of a limit is removed.
func TestMetricsOfNamedLimits(t *testing.T) {
	file := func(more string) string { return "admin: 127.0.0.1:0\n" + redisFile(more) }
	for overflow, name := range map[string]string{"evict": "weir_redis_evictions_total", "refuse": "weir_redis_no_room_refusals_total"} {
		s := startRedis(t, file(", overflow: "+overflow))
		number := func(name string) (n float64) {
			found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(s.metrics())
			require.NotNil(t, found, name)
			_, err := fmt.Sscan(found[1], &n)
			require.NoError(t, err)
			return n
		}
		before := number("weir_redis_table_bytes")
		slots := number("weir_redis_table_slots")
		s.rewrite(file(", overflow: " + overflow + ", limits: {fixed: {rate: 9/d, algorithm: fixed-window}, log: {rate: 9/d, algorithm: sliding-log}}"))
		assert.Greater(t, number("weir_redis_table_bytes"), before)
		assert.Greater(t, number("weir_redis_table_slots"), slots)
		c := dialRedis(t, s.redisAddress())
		for range 2 {
			says(t, c, "CL.THROTTLE a 9 9 3600")
			says(t, c, "CL.THROTTLE a fixed")
			says(t, c, "CL.THROTTLE a log")
		}
		settings := s.current.Load().redis
		for _, l := range []*engine.Limiter{settings.Limiter, settings.Tables["fixed"].Limiter, settings.Tables["log"].Limiter} {
			l.Sweep()
		}
		assert.Equal(t, 3.0, number("weir_redis_keys"))
		assert.Contains(t, says(t, c, "INFO"), " keys:3 ")
		assert.Zero(t, number(name))
		for i := range 300 {
			says(t, c, fmt.Sprintf("CL.THROTTLE %d fixed", i))
			says(t, c, fmt.Sprintf("CL.THROTTLE %d log", i))
		}
		most := number(name)
		assert.Greater(t, most, 200.0)
		s.rewrite(file(", overflow: " + overflow + ", limits: {fixed: {rate: 9/d, algorithm: fixed-window}}"))
		assert.Equal(t, most, number(name))
		for i := range 300 {
			says(t, c, fmt.Sprintf("CL.THROTTLE b%d fixed", i))
		}
		assert.Greater(t, number(name), most)
	}
}

func (r *running) metrics() string {
	r.t.Helper()
	resp, err := r.client.Get(r.urlOf(administrators) + "metrics")
	require.NoError(r.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	return string(text)
}

// TestPlacesOutliveAReload: requests in flight still count after a reload. A reload cannot change how long they count.
func TestPlacesOutliveAReload(t *testing.T) {
	r := startRedis(t, redisFile(", in_flight: 1h"))
	ask := func(command string) string { return flatReply(t, r, command) }
	require.Contains(t, ask("WEIR.ENTER a LIMIT 1"), " allowed :1 ")
	r.rewrite(redisFile(", in_flight: 1h, longest: 5m, overflow: refuse"))
	require.Contains(t, ask("WEIR.ENTER a LIMIT 1"), " allowed :0 ")
	require.NoError(t, os.WriteFile(r.path, []byte(redisFile(", in_flight: 2h")), 0o600))
	require.ErrorContains(t, r.Reload(), "redis: in_flight was 1h0m0s and is 2h0m0s")
	r.rewrite(redisFile(""))
	require.Contains(t, ask("WEIR.ENTER a LIMIT 1"), "-ERR requests in flight are not counted")
	r.rewrite(redisFile(", in_flight: 1h"))
	require.Contains(t, ask("WEIR.ENTER a LIMIT 1"), " allowed :0 ")
}

// TestHoldsOutliveAReload: an id that was used before a reload cannot be used again.
func TestHoldsOutliveAReload(t *testing.T) {
	r := startRedis(t, redisFile(""))
	fields := strings.Fields(flatReply(t, r, "WEIR.HOLD a LIMIT 100/d COST 40"))
	id := fields[slices.Index(fields, "id")+2]
	require.Contains(t, flatReply(t, r, "WEIR.SETTLE "+id+" 40"), " settled ")
	r.rewrite(redisFile(", longest: 48h, overflow: refuse"))
	require.Contains(t, flatReply(t, r, "WEIR.SETTLE "+id+" 0"), " repeated ")
	require.Contains(t, flatReply(t, r, "WEIR.PEEK a LIMIT 100/d"), " remaining :60 ")
}

func flatReply(t *testing.T, r *running, command string) string {
	t.Helper()
	address, err := url.Parse(r.urlOf(redisClients))
	require.NoError(t, err)
	c, err := net.Dial("tcp", address.Host)
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, command+"\r\nQUIT\r\n")
	require.NoError(t, err)
	answer, err := io.ReadAll(c)
	require.NoError(t, err)
	return strings.ReplaceAll(string(answer), "\r\n", " ")
}
