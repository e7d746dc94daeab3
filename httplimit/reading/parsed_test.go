package reading

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/hostile"
)

// The function once returns a copy of a request that has a Parsed, and that Parsed.
func once(r *http.Request) (*http.Request, *Parsed) {
	p := new(Parsed)
	return r.WithContext(context.WithValue(r.Context(), ParsedKey{}, p)), p
}

// manyMatches returns matches with patterns of each kind. Some have one pattern and some several.
func manyMatches(t testing.TB) (all []*Match) {
	texts := []string{"/login", "/", "/{$}", "/users/{id}/search", "/{app}/run.php", "/run.php", "/static/", "/files/{rest...}",
		"/a.b.c", "/a.b", "/sk", "/Kelvin/", "/admin/users", "/a"}
	for i, text := range texts {
		all = append(all, &Match{Paths: patternsOf(t, text)}, &Match{Paths: patternsOf(t, text), KeepCase: true},
			&Match{Paths: patternsOf(t, text, texts[(i+3)%len(texts)]), KeepType: true, Methods: []string{"DELETE", "GET"}},
			&Match{Paths: patternsOf(t, text), Query: []Field{{Name: "k", Values: []string{"V"}}}},
			&Match{Query: []Field{{Name: "k"}}, Not: []Match{{Paths: patternsOf(t, text)}}})
	}
	for _, path := range []Path{prefixOf(t, "/log"), prefixOf(t, "/users/"), regexpOf(t, "^/users/[^/]+$"), regexpOf(t, "SK")} {
		all = append(all, &Match{Paths: []Path{path}}, &Match{Paths: []Path{path}, KeepCase: true, KeepType: true})
	}
	for _, value := range []string{"v1", "V", ""} {
		field := []Field{HeaderField("X-Kind", value)}
		all = append(all, &Match{Headers: field}, &Match{Headers: field, KeepCase: true}, &Match{Not: []Match{{Headers: field}}})
	}
	return all
}

// equalReadings requires that reading a request gives the same results with a Parsed and without one.
func equalReadings(t testing.TB, x *Index, r *http.Request) {
	kept, p := once(r)
	for i, m := range x.matches {
		require.Equal(t, m.Meets(r, nil), x.Meets(i, kept, nil), "%s: %s", r.URL, m)
		require.Equal(t, m.Meets(r, nil), m.Meets(kept, nil), "%s: %s", r.URL, m)
		require.Equal(t, m.IsCertain(r, nil), m.IsCertain(kept, nil), "%s: %s", r.URL, m)
		require.Equal(t, m.KeyPath(r), m.KeyPath(kept), "%s: %s", r.URL, m)
	}
	for _, name := range []string{"k", "sid", "a", "t", "a_b", "K", "k%"} {
		for _, read := range []func(*http.Request, string) (string, bool){QueryKey, CookieKey} {
			want, ok := read(r, name)
			for range 2 {
				got, keptOK := read(kept, name)
				require.Equal(t, want, got, "%s of %s %q", name, r.URL, r.Header)
				require.Equal(t, ok, keptOK, "%s of %s %q", name, r.URL, r.Header)
			}
		}
	}
	for _, name := range []string{"X-Kind", "Authorization", "X-Api-Key"} {
		want, ok := HeaderKey(r, name)
		got, keptOK := HeaderKey(kept, name)
		require.Equal(t, want, got, "%s of %q", name, r.Header)
		require.Equal(t, ok, keptOK, "%s of %q", name, r.Header)
		require.Equal(t, FirstLine(r, name), FirstLine(kept, name), "%s of %q", name, r.Header)
	}
	require.Equal(t, IsOverridden(r), IsOverridden(kept), "%q", r.Header)
	require.NotZero(t, p.work)
}

// Results that use a Parsed or an Index equal the results of reading the request each time.
func TestWhatIsReadOnceIsTheSame(t *testing.T) {
	x := NewIndex(manyMatches(t)...)
	for _, p := range paths {
		u, err := url.ParseRequestURI(p.raw)
		require.NoError(t, err)
		equalReadings(t, x, &http.Request{Method: http.MethodGet, URL: u})
	}
	for _, path := range []string{"/a.b.c.d", "/a.b.c/x", "/LOGIN.x.y", "/login./x", "/\u017f\u212a", "/\u212aelvin", "/SK.", "/.", "",
		"/login\xff", "/a::$DATA", "/ADMIN/Users.json"} {
		equalReadings(t, x, &http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}})
	}
	methods := NewIndex(&Match{Methods: []string{"DELETE"}}, &Match{Methods: []string{"GET"}}, &Match{Methods: []string{"LINK"}},
		&Match{Methods: []string{"unlink"}}, &Match{Methods: []string{"POST"}}, &Match{Not: []Match{{Methods: []string{"POST"}}}})
	for _, method := range []string{"DELETE", "dElEtE", "HEAD", "head", "GET", "LIN\u212a", "l\u0131nk", "L\u0130NK", "UNLINK", "\xffINK", "x"} {
		u := &url.URL{Path: "/", RawQuery: url.Values{"_method": {method, "x"}}.Encode()}
		equalReadings(t, methods, &http.Request{Method: http.MethodPost, URL: u})
		equalReadings(t, methods, &http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/"}, Header: http.Header{"X-Http-Method": {method}}})
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		equalReadings(t, x, hostile.Request(random, 300))
	}
}

// FuzzWhatIsReadOnce: for any request, the results of an Index and of a Parsed equal the results of reading the request
// again.
func FuzzWhatIsReadOnce(f *testing.F) {
	x := NewIndex(manyMatches(f)...)
	f.Add("/x/%2e%2e/login;v=1", "k=V+&K=W", "sid=V, a=b; SID=%56")
	f.Fuzz(func(t *testing.T, target, query, cookie string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || len(target)+len(query)+len(cookie) > 4096 {
			t.Skip("no request target, or one longer than is tried here")
		}
		u.RawQuery = query
		equalReadings(t, x, &http.Request{Method: http.MethodPost, URL: u, Header: http.Header{"Cookie": {cookie}}})
	})
}

// If several first segments meet the same pattern, they have one form. This holds for every alphabet.
func TestFormsOfFirstSegments(t *testing.T) {
	for r := rune(1); r <= unicode.MaxRune; r++ {
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			require.Equal(t, string(appendFirst(nil, string(r))), string(appendFirst(nil, string(other))), "%q %q", r, other)
		}
	}
	for _, same := range [][2]string{{"login", "LOGIN. "}, {"a", "a\x00b"}, {"a", "A::$DATA"}, {"\xff", "\xfe"}} {
		assert.True(t, sameSegment(same[0], same[1], false), same)
		assert.Equal(t, appendFirst(nil, same[0]), appendFirst(nil, same[1]), same)
	}
}

// sixtyFour returns an index of the matches of 64 rules.
func sixtyFour(t testing.TB) *Index {
	all := make([]*Match, 64)
	for i := range all {
		all[i] = &Match{Paths: patternsOf(t, []string{"/login", fmt.Sprintf("/p%d/{id}/x", i), "/{app}/run.php",
			fmt.Sprintf("/static%d/", i), "/{rest...}"}[i%5])}
		switch {
		case i%3 == 0:
			all[i].Methods = []string{http.MethodDelete}
		case i%7 == 0:
			all[i].Paths = []Path{prefixOf(t, fmt.Sprintf("/p%d", i)), regexpOf(t, fmt.Sprintf("^/q%d/[0-9]+$", i))}
		case i%8 == 0:
			all[i].Headers = []Field{HeaderField("X-Kind", fmt.Sprintf("v%d", i))}
		}
		if i%4 == 0 {
			all[i].Query = []Field{{Name: "k", Values: []string{"V"}}}
		}
	}
	return NewIndex(all...)
}

func workOf(x *Index, r *http.Request) int {
	kept, p := once(r)
	if TooLong(kept) != "" {
		return 0
	}
	for i, m := range x.matches {
		x.Meets(i, kept, nil)
		switch i % 6 {
		case 0:
			m.KeyPath(kept)
		case 4:
			_, _ = HeaderKey(kept, "X-Api-Key")
		case 5:
			IsOverridden(kept)
			FirstLine(kept, "X-Tier")
		case 1:
			_, _ = QueryKey(kept, fmt.Sprint("q", i/8))
		case 2:
			_, _ = CookieKey(kept, fmt.Sprint("c", i/8))
		case 3:
			_, _ = CookieKey(kept, "sid")
		}
	}
	return p.work
}

// 10,000 hostile requests are compared with 64 rules. The worst takes at most five times the steps of a plain request
// of its size. BenchmarkHostileRequests in cmd/internal/serve measures the time.
func TestHostileRequestsAreLittleMoreWork(t *testing.T) {
	x := sixtyFour(t)
	plain := workOf(x, hostile.Plain(64<<10))
	random, worst, refused := rand.New(rand.NewPCG(1, 2)), 0, 0
	for range 10_000 {
		r := hostile.Request(random, 64<<10)
		work := workOf(x, r)
		if work == 0 {
			refused++
		}
		worst = max(worst, work)
	}
	t.Logf("plain %d steps, worst %d, %d refused", plain, worst, refused)
	assert.LessOrEqual(t, worst, 5*plain)
	assert.Less(t, refused, 8500, "the others are read")
	slow := &http.Request{URL: &url.URL{Path: "/" + strings.Repeat("/;", 2000)}}
	assert.Equal(t, "the path", TooLong(slow))
	lines := make([]string, maxLines)
	many := &http.Request{URL: &url.URL{Path: "/"}, Host: strings.Repeat("a", 255) + ":65535", Header: http.Header{"X-A": lines}}
	assert.Empty(t, TooLong(many))
	many.Header["X-A"] = append(lines, "")
	assert.Equal(t, "the field X-A", TooLong(many))
	assert.Equal(t, "the host", TooLong(&http.Request{URL: &url.URL{Path: "/"}, Host: strings.Repeat("a", 262)}))
}

// FuzzWork looks for a request that takes more steps than a bound that depends on its size.
func FuzzWork(f *testing.F) {
	x := sixtyFour(f)
	f.Add("/"+strings.Repeat("/;", 200), "k=V&q1=+", "sid=V; c1=W, c2=X", " V", uint8(2))
	f.Fuzz(func(t *testing.T, target, query, cookie, field string, lines uint8) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			t.Skip("no request target")
		}
		u.RawQuery = query
		r := &http.Request{Method: http.MethodPost, URL: u, Header: http.Header{"Cookie": {cookie}}}
		for _, name := range []string{"X-Api-Key", "X-Kind", "X-Tier", "X-Http-Method-Override"} {
			r.Header[name] = slices.Repeat([]string{field}, 1+int(lines))
		}
		// The bound is a sum. It has 16 steps for each segment of all readings (to compare it with some patterns), 5
		// for each byte, and a constant.
		if work, size := workOf(x, r), hostile.Size(r); work > 16*maxSplit+5*size+1000 {
			t.Errorf("%d steps for %d bytes", work, size)
		}
	})
}
