package dump

import "testing"

func TestFractionsInJSONAreComparedAsTheyAreRestored(t *testing.T) {
	for _, c := range []struct {
		made, restored string
		lossy          bool
	}{
		{`{"a": 1.10}`, `{"a": 1.1}`, true},
		{`[1.0, -0.0, 1e300, 2.5]`, `[1.0, -0.0, 1e300, 2.5]`, false},
		{`{"1.10": "1.10 \" 2.50"}`, `{"1.10": "1.10 \" 2.50"}`, false},
		{`[123456789012345678901.5]`, `[1.2345678901234568e20]`, true},
	} {
		a, lossy := comparableJSON([]byte(c.made))
		b, _ := comparableJSON([]byte(c.restored))
		if string(a) != string(b) || lossy != c.lossy {
			t.Errorf("%s is %s (lossy %v), %s is %s", c.made, a, lossy, c.restored, b)
		}
	}
	for _, other := range []string{`[1]`, `[1.2]`, `["1.0"]`} {
		a, _ := comparableJSON([]byte(`[1.0]`))
		if b, _ := comparableJSON([]byte(other)); string(a) == string(b) {
			t.Errorf("[1.0] and %s are the same", other)
		}
	}
}

func FuzzComparableJSON(f *testing.F) {
	f.Add([]byte(`{"a\"": [1.10, -0.0, 1e5], "b": "x`))
	f.Fuzz(func(t *testing.T, value []byte) {
		once, _ := comparableJSON(value)
		if again, _ := comparableJSON(once); string(again) != string(once) {
			t.Errorf("%q is %q, and that is %q", value, once, again)
		}
	})
}
