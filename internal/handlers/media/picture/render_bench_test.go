package picture

import (
	"os"
	"testing"

	"github.com/gen2brain/jpegn"
)

// BenchmarkRender renders the specification's three sizes: of the picture that
// CMSJOBS_BENCH_PICTURE names, else of one of 12 megapixels made here.
func BenchmarkRender(b *testing.B) {
	var data []byte
	if name := os.Getenv("CMSJOBS_BENCH_PICTURE"); name != "" {
		var err error
		if data, err = os.ReadFile(name); err != nil {
			b.Fatal(err)
		}
	} else {
		data = encodeJPEG(b, photo(4000, 3000), &jpegn.EncodeOptions{Quality: 85})
	}
	m := Generator{Limits: DefaultLimits(), Encoding: Encoding{Quality: 80}}
	b.ReportAllocs()
	for b.Loop() {
		render(b, m, data, Spec{Width: 150, Height: 150}, Spec{Width: 300, Height: 300},
			Spec{Width: 800, Height: 800, Mode: Fit})
	}
}
