/*
Package reading decides whether a request matches a pattern. It considers every way in which a server may read the
request.

Servers read one request in several ways. For some servers, /x/../login, //login, /login;v=1, /%6cogin, /LOGIN and
/login.json are the page /login. For other servers, each of them is a different page. If a limit uses one reading and
the server another, a client can avoid the limit by spelling the path differently. So a [Match] is compared with all
readings:

	login, err := reading.ParsePath("/login")
	...
	m := reading.Match{Paths: []reading.Path{login}, Methods: []string{"POST"}}
	limit := httplimit.Limit{
		Name: "login", Limiter: limiter,
		Match: func(r *http.Request) bool { return m.Meets(r, nil) },
	}

# Three questions

A [Match] has three methods, because it depends on the use of the result which error is safe:

  - [Match.Meets] is for a limit. It reports true if any reading of the request matches, so that no spelling avoids the
    limit.
  - [Match.IsCertain] is for an exception from a limit. It reports true only if every reading matches, so that no
    doubtful request is exempt.
  - [Match.Matches] is for a route. It uses only the reading of net/http, because a request has one destination.

# Keys

A limit for each path needs a key that a client cannot vary. [Match.KeyPath] and [KeyPath] return it. All paths whose
key depends on the reading share one key. So all spellings that a server treats as one path have at most two keys.

# Which readings

Readings of a path differ in these points:

  - Escapes are undone before or after the path is split into segments, and once or twice.
  - The segments . and .. are resolved or kept, with or without empty segments.
  - ";x" is removed from a segment or kept, and a backslash is a slash or not.
  - Upper and lower case are the same or differ.
  - An extension of the last name belongs to the path or not. So does the text after the name of a file, which CGI
    splits off.
  - Dots, blanks and the names of streams at the end of a segment are ignored, as on Windows, or not.
  - A zero byte or an escaped question mark ends the path or not.
  - //name/path is a URL with a host or a path.

In a query, the name of a parameter may have any spelling that a framework accepts, including the form for elements of
lists (name[]). A semicolon ends the parameter or not. A POST may also have the methods that its parameter _method
names.

# Cost and bounds

A Match has no lock and no state: any number of goroutines may use it as long as none changes it. Its three methods do
not allocate for plain paths of up to 32 segments.

A path that is too long is not read. It meets every pattern, and has the key of ambiguous paths. A path may have up to 8
KiB. Its length times the number of its readings may be up to 8 KiB, and all readings together may have up to 2,048
segments. In the same way, a query or a cookie header is not read if it has more than 2,048 parameters or cookies.
Regular expressions read up to 4 KiB of all readings of a path together. [TooLong] names the part of a request that is
not read.

A program with many rules stores what it has read from a request in a [Parsed], and compares the request with an
[Index]. Path, query and cookies are then read once for all rules, and a rule whose patterns begin with another segment
costs only a lookup. httplimit uses a Parsed for requests that are costly to read ([IsCostly]). So a client cannot cause
much work with a request: of 10,000 hostile requests with headers of 64 KiB, none takes more than five times the steps
of a plain request.

# Stability

The API follows semantic versions from v0.1.0 on. A later version may know more readings, so that more requests meet a
pattern. Such a change does not count as breaking.
*/
package reading
