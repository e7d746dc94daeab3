package admin

import (
	"bytes"
	"flag"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/admin/browsertest"
)

var screenshots = flag.String("screenshots", "",
	"a directory to write pictures of the live page to, such as ../../../docs/images")

// TestScreenshots makes the pictures of the documentation again:
//
//	go test . -run TestScreenshots -screenshots ../../../docs/images
func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("-screenshots is not set")
	}
	d := newDemo(t, KeysFull, points*time.Second)
	d.run(t)
	d.fill()
	b := browsertest.New(t)
	b.Do(b.Size(1280, 900, "light"), chromedp.Navigate(d.serve(t)))
	b.Until(`document.querySelectorAll(".rule").length === 6`)
	d.second()
	for _, picture := range []struct {
		name          string
		width, height int64
		scheme        string
	}{
		{"live-page", 1280, 900, "light"}, {"live-page-dark", 1280, 900, "dark"},
		{"live-page-phone", 390, 844, "dark"}, {"live-page-phone-light", 390, 844, "light"},
	} {
		b.Do(b.Size(picture.width, picture.height, picture.scheme))
		path := filepath.Join(*screenshots, picture.name+".png")
		require.NoError(t, os.WriteFile(path, fewColours(t, b.Picture()), 0o644))
	}
}

// fewColours writes a picture in its 256 most frequent colours, which halves its size.
func fewColours(t *testing.T, shot []byte) []byte {
	from, err := png.Decode(bytes.NewReader(shot))
	require.NoError(t, err)
	times, bounds := map[color.Color]int{}, from.Bounds()
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			times[from.At(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(times), func(a, b color.Color) int { return times[b] - times[a] })
	palette := color.Palette(colours[:min(256, len(colours))])
	index := make(map[color.Color]uint8, len(colours))
	for _, c := range colours {
		index[c] = uint8(palette.Index(c))
	}
	to := image.NewPaletted(bounds, palette)
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			to.SetColorIndex(x, y, index[from.At(x, y)])
		}
	}
	var out bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to))
	return out.Bytes()
}
