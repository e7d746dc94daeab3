// Package spelling maps a name or a value to a text. If servers read several spellings alike, all of them have the same
// text. If they had different texts, a client could get another bucket by spelling its cookie differently.
package spelling
