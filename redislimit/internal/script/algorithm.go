package script

import (
	_ "embed" // the scripts
	"strconv"

	"github.com/redis/rueidis"

	"github.com/weir-go/weir/engine"
)

// An algorithm is all that differs between the algorithms that a store keeps.
type algorithm struct {
	number  uint8                                   // in a limit's hash, and so in names of keys: it never changes
	most    uint64                                  // the largest limit, which is the engine's
	numbers func(*Limit) []string                   // what the script is told of a limit
	script  *rueidis.Lua                            // decides on the server
	model   func(*Model, *Limit, int64, Ask) Answer // decides as the script does
}

// algorithms has every algorithm that a store keeps. What is not in it is an error of [NewLimit].
//
// A script is asked by EVALSHA and, where a server does not know it, by EVAL once. The client library does not
// repeat either when a connection breaks, because it may have been carried out.
var algorithms = map[engine.Algorithm]*algorithm{
	engine.AlgorithmTokenBucket: {
		0, 1 << 32, (*Limit).bucketNumbers, rueidis.NewLuaScript(commonLua + tokenBucketLua), (*Model).bucket,
	},
	engine.AlgorithmFixedWindow: {
		1, 1 << 32, (*Limit).fixedNumbers, rueidis.NewLuaScript(commonLua + fixedWindowLua), (*Model).fixed,
	},
	engine.AlgorithmSlidingWindow: {
		2, 1<<24 - 1, (*Limit).windowNumbers, rueidis.NewLuaScript(commonLua + slidingWindowLua), (*Model).sliding,
	},
	engine.AlgorithmSlidingLog: {
		3, 4096, (*Limit).windowNumbers, rueidis.NewLuaScript(commonLua + slidingLogLua), (*Model).logged,
	},
}

var (
	//go:embed common.lua
	commonLua string
	//go:embed tokenbucket.lua
	tokenBucketLua string
	//go:embed fixedwindow.lua
	fixedWindowLua string
	//go:embed slidingwindow.lua
	slidingWindowLua string
	//go:embed slidinglog.lua
	slidingLogLua string
)

func (l *Limit) bucketNumbers() []string {
	return []string{strconv.FormatInt(l.num, 10), strconv.FormatInt(l.den, 10), strconv.FormatUint(l.tokens, 10)}
}

func (l *Limit) windowNumbers() []string {
	return []string{strconv.FormatUint(l.tokens, 10), strconv.FormatInt(l.window, 10)}
}

func (l *Limit) fixedNumbers() []string {
	aligned := "0"
	if l.aligned {
		aligned = "1"
	}
	return append(l.windowNumbers(), aligned)
}
