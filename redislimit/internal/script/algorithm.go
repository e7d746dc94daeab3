package script

import (
	_ "embed" // the scripts
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/weir-go/weir/engine"
)

// An algorithm contains the properties in which the algorithms of a store differ.
type algorithm struct {
	number         uint8                                   // identifies the algorithm in the script for several limits
	kind           string                                  // part of the names of keys
	maxLimit       uint64                                  // the largest limit, which is the same as in the engine
	defaultMaxDebt uint64                                  // how many limits a key may owe by default
	numbers        func(*Limit) []string                   // for the script
	source         string                                  // the two parts of a script
	script         *rueidis.Lua                            // made of both parts
	model          func(*Model, *Limit, int64, Ask) Answer // decides as the script does
}

// algorithms contains every algorithm of which a limit can be in a store. The client library does not repeat the call
// of such a script when a connection breaks, because the server may have carried the call out.
var algorithms = map[engine.Algorithm]*algorithm{
	engine.AlgorithmTokenBucket: {
		0, "bucket", 1 << 32, 3, (*Limit).bucketNumbers, tokenBucketLua, rueidis.NewLuaScript(compose(tokenBucketLua)), (*Model).tokenBucket,
	},
	engine.AlgorithmFixedWindow: {
		1, "fixed", 1 << 32, 3, (*Limit).fixedNumbers, fixedWindowLua, rueidis.NewLuaScript(compose(fixedWindowLua)), (*Model).fixedWindow,
	},
	engine.AlgorithmSlidingWindow: {
		2, "sliding", 1<<24 - 1, 3, (*Limit).windowNumbers, slidingWindowLua, rueidis.NewLuaScript(compose(slidingWindowLua)), (*Model).slidingWindow,
	},
	engine.AlgorithmConcurrency: {
		3, "flight", 4096, 1, (*Limit).windowNumbers, inFlightLua, rueidis.NewLuaScript(compose(inFlightLua)), (*Model).inFlight,
	},
	engine.AlgorithmSlidingLog: {
		4, "log", 4096, 2, (*Limit).windowNumbers, slidingLogLua, rueidis.NewLuaScript(compose(slidingLogLua)), (*Model).slidingLog,
	},
}

var (
	//go:embed shared.lua
	sharedLua string
	//go:embed step.lua
	stepLua string
	//go:embed write.lua
	writeLua string
	//go:embed frame.lua
	frameLua string
	//go:embed together.lua
	togetherLua string
	//go:embed kind.lua
	kindLua string
	//go:embed tokenbucket.lua
	tokenBucketLua string
	//go:embed fixedwindow.lua
	fixedWindowLua string
	//go:embed count.lua
	countLua string
	//go:embed calendarwindow.lua
	calendarWindowLua string
	//go:embed slidingwindow.lua
	slidingWindowLua string
	//go:embed inflight.lua
	inFlightLua string
	//go:embed slidinglog.lua
	slidingLogLua string
)

// compose makes a script without functions, because a function would be created again in every call.
func compose(algorithm string) string { return fill(frameLua, 0, algorithm) }

// composeTogether makes the script for several limits. It has a function for each algorithm, because one call may have
// several limits of the same algorithm.
func composeTogether() string {
	var kinds []string
	for _, a := range []*algorithm{
		algorithms[engine.AlgorithmTokenBucket], algorithms[engine.AlgorithmFixedWindow], algorithms[engine.AlgorithmSlidingWindow],
		algorithms[engine.AlgorithmConcurrency], algorithms[engine.AlgorithmSlidingLog], calendarWindow,
	} {
		kinds = append(kinds, fill(kindLua, a.number, a.source))
	}
	return strings.NewReplacer("\nSHARED\n", "\n"+sharedLua, "\nKINDS\n", "\n"+strings.Join(kinds, "\n"),
		"    WRITE\n", writeLua).Replace(togetherLua)
}

func fill(frame string, number uint8, algorithm string) string {
	limit, key, _ := strings.Cut(algorithm, "\n-- Each key:\n")
	step := strings.Replace(stepLua, "\n    KEY\n", "\n"+strings.Replace(key, "COUNT\n", countLua, 1), 1)
	return strings.NewReplacer("\nSHARED\n", "\n"+sharedLua, "\nLIMIT\n", "\n"+limit+"\n", "    STEP\n", step, "    WRITE\n", writeLua,
		"NUMBER", strconv.Itoa(int(number))).Replace(frame)
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
