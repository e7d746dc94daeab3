package script

import (
	_ "embed" // the scripts
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/weir-go/weir/engine"
)

// An algorithm is all that differs between the algorithms that a store keeps.
type algorithm struct {
	number  uint8                                   // in a limit's hash, and so in names of keys
	most    uint64                                  // the largest limit, which is the engine's
	debts   uint64                                  // how many limits a key may owe, if nothing else is said
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
		0, 1 << 32, 3, (*Limit).bucketNumbers, rueidis.NewLuaScript(compose(tokenBucketLua)), (*Model).bucket,
	},
	engine.AlgorithmFixedWindow: {
		1, 1 << 32, 3, (*Limit).fixedNumbers, rueidis.NewLuaScript(compose(fixedWindowLua)), (*Model).fixed,
	},
	engine.AlgorithmSlidingWindow: {
		2, 1<<24 - 1, 3, (*Limit).windowNumbers, rueidis.NewLuaScript(compose(slidingWindowLua)), (*Model).sliding,
	},
	engine.AlgorithmSlidingLog: {
		4, 4096, 2, (*Limit).windowNumbers, rueidis.NewLuaScript(compose(slidingLogLua)), (*Model).logged,
	},
}

var (
	//go:embed frame.lua
	frameLua string
	//go:embed tokenbucket.lua
	tokenBucketLua string
	//go:embed fixedwindow.lua
	fixedWindowLua string
	//go:embed slidingwindow.lua
	slidingWindowLua string
	//go:embed slidinglog.lua
	slidingLogLua string
)

// compose puts the two parts of an algorithm where they belong in what all scripts share. They are one text, because
// a function that a script has would be made anew in every call.
func compose(algorithm string) string {
	limit, key, _ := strings.Cut(algorithm, "\n-- Each key:\n")
	return strings.NewReplacer("\nLIMIT\n", "\n"+limit, "\n    KEY\n", "\n"+key).Replace(frameLua)
}

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
