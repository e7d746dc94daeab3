/*
Package reading decides whether a request matches a pattern. It considers every way in which a server may read the
request.

Servers read one request in several ways. For some servers, /x/../login, //login, /login;v=1, /%6cogin, /LOGIN and
/login.json are the page /login; for other servers, each is another page. If limit and server differ, a client can avoid
the limit by another spelling. So a [Match] is compared with all readings:

	login, err := reading.ParsePath("/login")
	...
	m := reading.Match{Paths: []reading.Path{login}, Methods: []string{"POST"}}
	limit := httplimit.Limit{
		Name: "login", Limiter: limiter,
		Match: func(r *http.Request) bool { return m.Meets(r, nil) },
	}

# Three questions

A [Match] has three methods, because the use of the result decides which error is safe:

  - [Match.Meets] is for a limit. It reports true if any reading of the request matches, so that no spelling avoids the
    limit.
  - [Match.IsCertain] is for an exception from a limit. It reports true only if every reading matches, so that no
    doubtful request is exempt.
  - [Match.Matches] is for a route. It uses only the reading of net/http, because a request has one destination.

# Keys

[Match.KeyPath] and [KeyPath] return a key for a limit per path, which a client cannot vary: all paths whose key depends
on the reading share one key. So all spellings that a server treats as one path have at most two keys.

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

In a query, a parameter's name has any spelling that a framework accepts, such as name[] for lists. A semicolon ends the
parameter or not. For a POST, the parameter _method may name another method.

# Cost and bounds

Goroutines may use a Match concurrently if none of them changes it. Its three methods do not allocate for plain paths of
up to 32 segments.

A path, query or cookie header above these bounds is not read. Such a path meets every pattern, and has the key of
ambiguous paths. [TooLong] names the part of a request that is not read.

  - 8 KiB for a path, and for its length times the number of its readings
  - 2,048 segments of all readings together
  - 2,048 parameters of a query, and 2,048 cookies

Regular expressions read up to 4 KiB of all readings of a path together.

With a [Parsed] and an [Index], a program reads path, query and cookies once for many rules. A rule costs only a lookup
if its patterns begin with a segment other than the path's first. httplimit uses a Parsed for requests that are costly
to read ([IsCostly]). So a client cannot cause much work: of 10,000 hostile requests with headers of 64 KiB, none takes
more than five times the steps of a plain request.

# Stability

The API follows semantic versions from v0.1.0 on. More readings in a later version, so that more requests meet a
pattern, are not a breaking change.
*/
package reading
