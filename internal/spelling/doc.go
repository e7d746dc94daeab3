// Package spelling maps all spellings that servers read as one name or value to one text. A client must not get another
// bucket because it spells its cookie differently.
package spelling
