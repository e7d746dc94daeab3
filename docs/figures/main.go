// Figures draws the pictures and prints the tables of docs/algorithms.md. The engine makes every decision that the
// pictures and tables show.
//
//	go run ./docs/figures             write the pictures to docs/figures
//	go run ./docs/figures -numbers    print memory per key and the highest limits
//	go run ./docs/figures -accuracy   print how often the sliding window counter is wrong
//
// With -accuracy, the program also reads an access log, if -log or the variable WEIR_ACCESS_LOG names a log. The log
// has the common or combined format, plain or gzip.
//
//	load.go      the requests of the pictures, and the engine's answers to them
//	picture.go   draws a picture of the requests and answers
//	figures.go   the list of pictures
//	story.go     the pictures of a debt and of holds
//	log.go       the exact log, with which the counter is compared
//	accuracy.go  compares the sliding window counter with the exact log
//	traffic.go   the requests for this comparison: Poisson, or an access log
//	numbers.go   memory and highest limits
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/weir-go/weir/internal/atomicfile"
)

func main() {
	numbers := flag.Bool("numbers", false, "print memory per key and the highest limits")
	accuracy := flag.Bool("accuracy", false, "print how often the sliding window counter is wrong")
	log := flag.String("log", os.Getenv("WEIR_ACCESS_LOG"), "an access log, for -accuracy")
	folder := flag.String("dir", "docs/figures", "where the pictures go")
	flag.Parse()
	if err := run(os.Stdout, *numbers, *accuracy, *log, *folder); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, numbers, accuracy bool, log, folder string) error {
	switch {
	case numbers:
		return printNumbers(out)
	case accuracy:
		return printAccuracy(out, log)
	}
	for file, draw := range pictures() {
		if err := atomicfile.Write(filepath.Join(folder, file+".svg"), draw); err != nil {
			return err
		}
	}
	return nil
}

func pictures() map[string]func(io.Writer) error {
	all := map[string]func(io.Writer) error{}
	for _, f := range figures {
		all[f.file] = f.draw
	}
	for _, s := range stories {
		all[s.file] = s.draw
	}
	return all
}
