/*
Package reading says which requests a pattern means, under every reading that a server may have.

Servers read one request in several ways. To some, /x/../login, //login, /login;v=1, /%6cogin, /LOGIN and /login.json
are the page /login; to others, each is another page. A limit that goes by one reading does not limit clients of a
server that goes by another: a client writes the path in the other way. So a [Match] is compared with all readings:

	login, err := reading.ParsePath("/login")
	...
	m := reading.Match{Paths: []reading.Path{login}, Methods: []string{"POST"}}
	limit := httplimit.Limit{
		Name: "login", Limiter: limiter,
		Match: func(r *http.Request) bool { return m.Meets(r, nil) },
	}

# Three questions

Which way is safe depends on what comes of the answer:

  - [Match.Meets]: a limit. It reports true if any reading is meant, so that no spelling goes around the limit.
  - [Match.IsCertain]: an exception from a limit. It reports true only if every reading is meant, so that nothing
    doubtful is exempt.
  - [Match.Matches]: a route. It goes by the one reading of net/http, since a request has one destination.

# Keys

A limit for each path needs a key that a client cannot vary. [Match.KeyPath] and [KeyPath] return it. All paths that
have several readings share one key, so what a server takes for one path has two keys at most.

# Which readings

Escapes undone before or after the path is split, once or twice; dots resolved or kept, with empty segments or without;
";x" taken off a segment or kept; a backslash that is a slash; upper and lower case; an extension behind the last name;
more behind a file, as CGI takes it; dots, blanks and streams at the end of a segment, as on Windows; the end of a path
at a zero byte, or at an escaped question mark; //name/path as a URL with a host. A parameter of the query has its name
in any spelling that a framework reads, with elements of lists (name[]), and a semicolon that ends it or not. A POST has
the methods that its parameter _method names, too.

# Cost and bounds

Nothing here locks or keeps state: a Match may be used by any number of goroutines as long as none changes it. The
three questions do not allocate for plain paths of up to 32 segments. A path that is not short is not read (8 KiB; 8
KiB, too, the bytes times the number of readings; 2,048 segments in all of them): it meets every pattern, and its key is
that of the ambiguous ones. The same is true of more than 2,048 parameters or cookies. Expressions read 4 KiB of the
readings of a path. [TooLong] names what is not read.

A program with many rules keeps what was read of a request in a [Parsed] and holds it against an [Index]: then path,
query and cookies are read once for all rules, and a rule whose patterns begin with another segment costs no more than a
look. httplimit uses a Parsed for requests that are much work ([IsCostly]). So a client cannot have a program work for
it: of 10,000 hostile requests with headers of 64 KiB, none takes more than five times the steps of a plain one.

# Stability

The API follows semantic versions from v0.1.0 on. That a later version knows more readings is a change for the better
and no break: more requests meet a pattern.
*/
package reading
