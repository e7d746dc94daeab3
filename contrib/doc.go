// Package contrib is empty: its test holds the middlewares for Gin, Echo and Fiber against the same table.
package contrib
