// Package spelling maps a name or a value to a text. If a server reads several spellings as the same name or value, all
// these spellings have the same text. Otherwise a client could get another bucket by spelling its cookie differently.
package spelling
