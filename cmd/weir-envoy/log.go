package main

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
)

func (c *serveCommand) logger(stderr *os.File) (*slog.Logger, error) {
	var level slog.Level
	switch strings.ToUpper(c.LogLevel) {
	case "TRACE", "DEBUG":
		level = slog.LevelDebug
	case "INFO":
		level = slog.LevelInfo
	case "WARN", "WARNING":
		level = slog.LevelWarn
	case "ERROR", "FATAL", "PANIC":
		level = slog.LevelError
	default:
		return nil, fmt.Errorf("LOG_LEVEL=%s: want trace, debug, info, warn, error, fatal or panic", c.LogLevel)
	}
	options := &slog.HandlerOptions{Level: level}
	if strings.EqualFold(c.LogFormat, "json") {
		return slog.New(slog.NewJSONHandler(stderr, options)), nil
	}
	return slog.New(slog.NewTextHandler(stderr, options)), nil
}
