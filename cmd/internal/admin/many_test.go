package admin

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/admin/browsertest"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// The function many returns an Admin with several rules. Each rule has its own path, and admits three requests per
// minute from an address. The function ask sends requests from an address to the path of a rule.
func many(t *testing.T, rules int) (a *Admin, ask func(rule, times int, address string)) {
	now := time.Unix(1e9, 0)
	all, list := make([]Rule, rules), make([]httplimit.Limit, rules)
	for i := range rules {
		l, err := engine.New(engine.TokenBucket(engine.Per(3, time.Minute), 3), engine.MaxKeys(100),
			engine.ClockFunc(func() time.Time { return now }))
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		all[i] = Rule{Name: fmt.Sprintf("rule-%02d", i), Policy: "3/1m0s", For: fmt.Sprintf("/%d", i), By: "ip", Limiter: l,
			Parts: []string{"ip"}, Buckets: Local(l, func(parts []string) engine.Key {
				return l.KeyAddr(netip.MustParseAddr(parts[0]))
			})}
		list[i] = httplimit.Limit{Name: all[i].Name, Limiter: l,
			Match: func(r *http.Request) bool { return r.URL.Path == all[i].For }}
	}
	servers := []Upstream{{Name: "http://192.0.2.7:3000", Up: true, InFlight: 4, Answered: 1000, Seconds: 12},
		{Name: "http://192.0.2.8:3000", Failed: 7}}
	a, err := build(Config{
		Rules: func() []Rule { return all }, Keys: KeysFull, Upstreams: func() []Upstream { return servers },
		Requests: func() Requests { return Requests{InFlight: 4} },
	})
	require.NoError(t, err)
	m, err := httplimit.New(list, httplimit.ObserveWith(a), httplimit.OnLimited(a.Limited))
	require.NoError(t, err)
	return a, func(rule, times int, address string) {
		r := httptest.NewRequest("GET", all[rule].For, nil)
		r.RemoteAddr = net.JoinHostPort(address, "1")
		for range times {
			result := m.Decide(r)
			result.Refuse(httptest.NewRecorder(), r)
		}
	}
}

// TestClients: a client that several rules refuse is listed once, with its state under each.
func TestClients(t *testing.T) {
	a, ask := many(t, 4)
	ask(1, 5, "192.0.2.1")
	ask(2, 8, "192.0.2.1")
	ask(3, 6, "192.0.2.2")
	top := a.state(time.Now()).Refused
	require.Len(t, top.Keys, 2)
	assert.EqualValues(t, 10, top.All)
	k := top.Keys[0]
	assert.Equal(t, topKey{Key: "ip:192.0.2.1", Hash: k.Hash, Lower: 7, Upper: 7, Rules: []topRule{{"rule-02", 5}, {"rule-01", 2}}}, k)

	look := func(body string) (rules []string, problem string) {
		w := request(a, "POST", "http://localhost/client/peek", body, "Content-Type: application/json")
		var got struct {
			Keys  []keyView
			Error string
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got), w.Body.String())
		assert.Equal(t, got.Error == "", w.Code == 200, body)
		for _, k := range got.Keys {
			rules = append(rules, fmt.Sprint(k.Rule, " ", k.Remaining))
		}
		return rules, got.Error
	}
	rules, _ := look(fmt.Sprintf(`{"hash":%q}`, k.Hash))
	assert.Equal(t, []string{"rule-01 0", "rule-02 0"}, rules, "those that refused it")
	rules, _ = look(`{"address":"192.0.2.1"}`)
	assert.Equal(t, []string{"rule-00 3", "rule-01 0", "rule-02 0", "rule-03 3"}, rules)
	for body, want := range map[string]string{
		`{"address":"nobody"}`:        `"nobody" is not an IP address`,
		`{}`:                          `"" is not an IP address`,
		`{"hash":"0123456789abcdef"}`: "key 0123456789abcdef is not watched",
		`{"hash":"zz"}`:               "key zz is not watched",
		`{"rule":"rule-00"}`:          "unknown field",
		`{"address":"192.0.2.1","hash":"0123456789abcdef"}`: "an address and a hash: want one of them",
	} {
		_, problem := look(body)
		assert.Contains(t, problem, want, body)
	}
	none, _ := many(t, 1)
	none.rules()[0].Parts[0] = "header:X-API-Key"
	w := request(none, "POST", "http://localhost/client/peek", `{"address":"192.0.2.1"}`, "Content-Type: application/json")
	assert.Contains(t, w.Body.String(), "no rule has the client's address as its key")
}

// TestManyRules: many rules are one line each, with the most refusals first. An opened line shows its card.
func TestManyRules(t *testing.T) {
	a, ask := many(t, 54)
	a.tick(time.Unix(1e9, 0))
	d := demo{admin: a}
	go a.run(nil)
	b := browsertest.New(t)
	b.Do(b.Size(1280, 900, "light"), chromedp.Navigate(d.serve(t)))
	b.Until(`document.querySelectorAll(".line").length === 54`)
	ask(7, 9, "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff")
	ask(31, 50, "192.0.2.1")
	for i := range int64(5) { // after these ticks, the lines are sorted again
		a.tick(time.Unix(1e9+1+i, 0))
	}
	b.Until(`document.querySelector(".line b").textContent === "rule-31" && document.querySelectorAll(".line b")[1].textContent === "rule-07"`)
	ask(31, 9, "192.0.2.1")
	a.tick(time.Unix(1e9+6, 0))
	b.Until(`document.querySelector(".line .refused:not(path)").textContent === "9/s"`)
	b.Until(`document.querySelector(".line path.refused").getAttribute("d").startsWith("M")`)
	var height int
	b.Evaluate(`document.documentElement.scrollHeight`, &height)
	assert.Less(t, height, 3200, "pixels of 54 rules")
	b.Until(`document.querySelector("#upstreams-chip").textContent === "1 of 2 servers down" &&
		document.querySelectorAll("#upstreams tr").length === 2 && document.querySelector("#requests-in-flight").textContent === ", 4 in flight"`)

	b.Do(chromedp.Click(".line .open"))
	b.Until(`document.querySelector(".line > .rule .meaning").textContent === "for /31, a limit for each client address"`)
	b.Do(chromedp.Click(".line .open"))
	b.Until(`document.querySelector(".line > .rule") === null`)

	b.Set("#form-rule", "\nevery")
	b.Do(chromedp.SendKeys("#form-parts input", "192.0.2.1\r"))
	b.Until(`document.querySelector("#result p")?.textContent === "192.0.2.1: refused now by 1 of 54 rules."`)
	for _, width := range []int64{360, 1280} {
		b.Do(b.Size(width, 800, "dark"))
		assert.Zero(t, b.Over(), "%d pixels wide", width)
	}
	b.NoProblems()
}
