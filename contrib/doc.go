// Package contrib has only a test, which checks the middlewares for Gin, Echo and Fiber with one table of cases.
package contrib
