// Package spelling maps all spellings of a name or a value that servers read alike to one text. Otherwise a client
// could get another bucket by spelling its cookie differently.
package spelling
