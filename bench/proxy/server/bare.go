package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// BareName is the name of a server that is only Go's proxy. It separates weir's own cost from the cost of Go's proxy.
const BareName = "httputil.ReverseProxy"

// BareCommand is the first argument that makes a program call [ServeBare].
const BareCommand = "serve-bare"

// Bare returns a server of Go's reverse proxy and a pool of buffers. program is the path of a program that calls
// [ServeBare].
func Bare(program string) *Server {
	return &Server{
		Name: BareName, Modes: []Mode{Without},
		Program: Program{Name: program, Package: "build it with make bench-proxy"},
		write:   func(s Site) string { return s.Listen + "\n" + s.Upstream + "\n" },
		args:    func(config string) []string { return []string{BareCommand, config} },
		Says:    "with a BufferPool, and connections to the upstream that stay open; the least that a proxy in Go does",
	}
}

// ServeBare serves a configuration of [Bare] until SIGTERM.
func ServeBare(config string) error {
	file, err := os.Open(config)
	if err != nil {
		return err
	}
	defer file.Close()
	var lines []string
	for in := bufio.NewScanner(file); in.Scan(); {
		lines = append(lines, strings.TrimSpace(in.Text()))
	}
	if len(lines) != 2 {
		return fmt.Errorf("%s: want the address to listen on and that of the upstream", config)
	}
	target := &url.URL{Scheme: "http", Host: lines[1]}
	proxy := &httputil.ReverseProxy{
		Rewrite:    func(r *httputil.ProxyRequest) { r.SetURL(target); r.SetXForwarded() },
		Transport:  &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 256, DisableCompression: true},
		BufferPool: &bareBuffers{sync.Pool{New: func() any { return new([bareBuffer]byte) }}},
	}
	server := &http.Server{Addr: lines[0], Handler: proxy, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

const bareBuffer = 32 << 10

// bareBuffers implements [httputil.BufferPool].
type bareBuffers struct{ pool sync.Pool }

func (b *bareBuffers) Get() []byte       { return b.pool.Get().(*[bareBuffer]byte)[:] }
func (b *bareBuffers) Put(buffer []byte) { b.pool.Put((*[bareBuffer]byte)(buffer)) }
