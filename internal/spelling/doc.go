// Package spelling brings what servers take for one name or one value to one text: a client that writes its cookie in
// another way must not have another bucket.
package spelling
