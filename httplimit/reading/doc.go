/*
Package reading decides whether a request matches a pattern, under every way in which a server may read the request.

Servers read one request in several ways. To some, /x/../login, //login, /login;v=1, /%6cogin, /LOGIN and /login.json
are the page /login; to others, each is another page. If a limit uses one reading and the server another, a client
avoids the limit by writing the path in another way. So a [Match] is compared with all readings:

	login, err := reading.ParsePath("/login")
	...
	m := reading.Match{Paths: []reading.Path{login}, Methods: []string{"POST"}}
	limit := httplimit.Limit{
		Name: "login", Limiter: limiter,
		Match: func(r *http.Request) bool { return m.Meets(r, nil) },
	}

# Three questions

Which answer is safe depends on its use:

  - [Match.Meets] is for a limit. It reports true if any reading of the request matches, so that no spelling avoids the
    limit.
  - [Match.IsCertain] is for an exception from a limit. It reports true only if every reading matches, so that no
    doubtful request is exempt.
  - [Match.Matches] is for a route. It uses only the reading of net/http, since a request has one destination.

# Keys

A limit for each path needs a key that a client cannot vary. [Match.KeyPath] and [KeyPath] return it. All paths whose
readings differ share one key. So the spellings of what a server treats as one path have at most two keys.

# Which readings

The readings of a path differ in the following:

  - Escapes are undone before or after the path is split, once or twice.
  - Dots are resolved or kept, with empty segments or without.
  - ";x" is removed from a segment or kept, and a backslash is a slash or not.
  - Upper and lower case are the same or differ.
  - An extension behind the last name, and more text behind a file as with CGI, belongs to the path or not.
  - Dots, blanks and streams at the end of a segment are ignored, as on Windows, or not.
  - A zero byte or an escaped question mark ends the path or not.
  - //name/path is a URL with a host or a path.

The name of a query parameter may have any spelling that a framework accepts, including elements of lists (name[]), and
a semicolon ends the parameter or not. A POST also has the methods that its parameter _method names.

# Cost and bounds

Nothing in this package locks or keeps state: any number of goroutines may use a Match as long as none changes it. The
three questions do not allocate for plain paths of up to 32 segments.

A path that is too long is not read: it meets every pattern, and has the key of ambiguous paths. The bounds are 8 KiB, 8
KiB for the length times the number of readings, and 2,048 segments in all readings together. The same applies to more
than 2,048 parameters or cookies. Regular expressions read 4 KiB of the readings of a path. [TooLong] names the part of
a request that is not read.

A program with many rules keeps the parsed request in a [Parsed] and compares it with an [Index]. Path, query and
cookies are then read once for all rules, and a rule whose patterns begin with another segment costs only a lookup.
httplimit uses a Parsed for requests that are costly to read ([IsCostly]). So a client cannot cause much work with a
request: of 10,000 hostile requests with headers of 64 KiB, none takes more than five times the steps of a plain
request.

# Stability

The API follows semantic versions from v0.1.0 on. A later version may know more readings, so that more requests meet a
pattern. Such a change does not count as breaking.
*/
package reading
