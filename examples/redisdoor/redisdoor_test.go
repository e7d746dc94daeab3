package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/examples/internal/exampletest"
)

// TestGoRedis runs the example against weir, with both protocol versions, single commands and pipelines.
func TestGoRedis(t *testing.T) {
	program := exampletest.Weir(t, "..")
	for protocol := 2; protocol <= 3; protocol++ {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "password", "first\nsecret\n")
			address := start(t, program, dir, "redis: {address: 127.0.0.1:0, password_file: password, max_keys: 1000}")
			ctx := context.Background()
			door := redis.NewClient(&redis.Options{Addr: address, Password: "secret", ClientName: "example", Protocol: protocol})
			defer door.Close()

			for i, want := range []string{"[0 3 2 -1 20]", "[0 3 1 -1 40]", "[0 3 0 -1 60]", "[1 3 0 20 60]"} {
				got, err := door.Do(ctx, "CL.THROTTLE", "user123", 2, 3, 60).Int64Slice()
				if err != nil || fmt.Sprint(got) != want {
					t.Errorf("take %d: %v, %v: want %s", i, got, err, want)
				}
			}

			pipe := door.Pipeline()
			var takes []*redis.Cmd
			for range 500 {
				takes = append(takes, pipe.Do(ctx, "CL.THROTTLE", "many", 299, 1, 3600))
			}
			if _, err := pipe.Exec(ctx); err != nil {
				t.Fatal(err)
			}
			allowed := 0
			for _, take := range takes {
				if got, err := take.Int64Slice(); err != nil {
					t.Fatal(err)
				} else if got[0] == 0 {
					allowed++
				}
			}
			if allowed != 300 {
				t.Errorf("%d of 500 were allowed: want 300", allowed)
			}

			if n, err := door.Del(ctx, "user123", "many", "never").Result(); n != 2 || err != nil {
				t.Errorf("DEL: %d, %v: want 2 keys that owed something", n, err)
			}
			if err := door.Get(ctx, "user123").Err(); err == nil {
				t.Error("GET is answered")
			}
			if protocol == 3 {
				got, err := door.Do(ctx, "WEIR.TAKE", "a", "LIMIT", "3/m").Result()
				m, ok := got.(map[any]any)
				if err != nil || !ok || m["allowed"] != true || m["remaining"] != int64(2) || m["reset_after"] != 20.0 {
					t.Errorf("WEIR.TAKE: %v, %v", got, err)
				}
			}

			wrong := redis.NewClient(&redis.Options{Addr: address, Password: "wrong", Protocol: protocol, MaxRetries: -1})
			defer wrong.Close()
			if err := wrong.Ping(ctx).Err(); err == nil {
				t.Error("a wrong password is good")
			}
		})
	}
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func start(t *testing.T, program, dir, rules string) (address string) {
	t.Helper()
	return exampletest.Run(t, exec.Command(program, "serve", write(t, dir, "weir.yaml", rules)), `url=redis://(\S+)/ `)
}
