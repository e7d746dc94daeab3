// Package chi shows httplimit with a chi router: see its Example.
package chi
