package inflate

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"testing/iotest"
)

// texts compress in different ways.
func texts() map[string][]byte {
	random := rand.New(rand.NewPCG(1, 2))
	all := map[string][]byte{"nothing": nil, "zeros": make([]byte, 400000), "short": []byte("abcabcabcabc")}
	for name, from := range map[string]int{"grain": 15, "noise": 256} {
		b := make([]byte, 300000)
		for i := range b {
			b[i] = byte(random.IntN(from) * random.IntN(from) / from)
		}
		all[name] = b
	}
	skewed := make([]byte, 300000) // long codes
	for i := range skewed {
		for skewed[i] = 0; random.IntN(5) < 3 && skewed[i] < 250; {
			skewed[i]++
		}
	}
	all["skewed"] = skewed
	var lines []byte
	for range 20000 {
		from := len(lines) - min(len(lines), random.IntN(32000))
		lines = append(lines, lines[from:min(from+5, len(lines))]...)
		lines = append(lines, byte(random.IntN(40)))
	}
	all["lines"] = lines
	for distance := range 9 {
		all["every "+string(rune('0'+distance))] = bytes.Repeat([]byte("abcdefghi")[:distance+1], 3000)
	}
	return all
}

func packed(t testing.TB, text []byte, level int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, level)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestStreamsAreReadBack(t *testing.T) {
	for name, text := range texts() {
		for _, level := range []int{flate.HuffmanOnly, flate.NoCompression, 1, 6, 9} {
			data := packed(t, text, level)
			got, err := io.ReadAll(New(bytes.NewReader(data)))
			if err != nil || !bytes.Equal(got, text) {
				t.Errorf("%s, level %d: %d bytes of %d, %v", name, level, len(got), len(text), err)
			}
			short := text[:min(len(text), 50000)]
			got, err = io.ReadAll(iotest.OneByteReader(New(iotest.OneByteReader(bytes.NewReader(packed(t, short, level))))))
			if err != nil || !bytes.Equal(got, short) {
				t.Errorf("%s, level %d, byte by byte: %d bytes of %d, %v", name, level, len(got), len(short), err)
			}
		}
	}
}

// A stream that ends early is an error, wherever it ends, and gives nothing that is
// not there.
func TestStreamsThatEndEarly(t *testing.T) {
	text := texts()["lines"][:3000]
	for _, level := range []int{flate.HuffmanOnly, flate.NoCompression, 6} {
		data := packed(t, text, level)
		for n := range len(data) {
			got, err := io.ReadAll(New(bytes.NewReader(data[:n])))
			if !errors.Is(err, io.ErrUnexpectedEOF) || !bytes.HasPrefix(text, got) {
				t.Fatalf("level %d, %d bytes of %d: %v", level, n, len(data), err)
			}
		}
	}
}

func TestErrorsOfTheSourceArePassedOn(t *testing.T) {
	broken := errors.New("broken")
	data := packed(t, texts()["grain"], 6)
	_, err := io.ReadAll(New(io.MultiReader(bytes.NewReader(data[:len(data)/2]), iotest.ErrReader(broken))))
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}

// FuzzReader: any bytes give what compress/flate gives of them, and are an error
// where they are one there.
func FuzzReader(f *testing.F) {
	for _, text := range texts() {
		text = text[:min(len(text), 2000)]
		for _, level := range []int{flate.HuffmanOnly, flate.NoCompression, 6} {
			f.Add(packed(f, text, level))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const most = 1 << 20
		want, wantErr := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data)), most))
		got, err := io.ReadAll(io.LimitReader(New(bytes.NewReader(data)), most))
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%v, want %v", err, wantErr)
		}
		if err == nil && !bytes.Equal(got, want) {
			t.Fatal("other bytes than those of compress/flate")
		}
	})
}

// BenchmarkReader reads the stream in the file that CMSJOBS_BENCH_STREAM names,
// else one made here.
func BenchmarkReader(b *testing.B) {
	data := packed(b, texts()["grain"], 6)
	if name := os.Getenv("CMSJOBS_BENCH_STREAM"); name != "" {
		var err error
		if data, err = os.ReadFile(name); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		n, err := io.Copy(io.Discard, New(bytes.NewReader(data)))
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(n)
	}
}
