// Package redislimit holds a limit over many machines, with its state in Redis or Valkey.
package redislimit
