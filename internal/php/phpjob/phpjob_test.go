package phpjob_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/php/phpjob"
	"github.com/cmsjobs/cmsjobs/internal/testgolden"
)

const golden = "testdata/payloads.golden"

// readings are what is read of the payloads of a file, as text.
func readings(t *testing.T, file []byte) []byte {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(file, &all); err != nil {
		t.Fatal(err)
	}
	read := map[string]phpjob.Job{}
	for name, raw := range all {
		read[name] = phpjob.Read(raw)
	}
	text, err := json.MarshalIndent(read, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

// testdata/payloads.json is what testdata/make.php printed with Laravel 8.
func TestWhatIsReadOfLaravelsPayloads(t *testing.T) {
	file, err := os.ReadFile("testdata/payloads.json")
	if err != nil {
		t.Fatal(err)
	}
	text := readings(t, file)
	if strings.Contains(string(text), "in-the-closure") {
		t.Error("the variables of a closure are shown")
	}
	testgolden.Check(t, golden, text)
}

func TestTheLaravelHereWritesThesePayloads(t *testing.T) {
	if _, err := os.Stat("/usr/share/php/Illuminate/Queue/autoload.php"); err != nil {
		jobstest.Skip(t, "no Laravel here (packages php-cli, php-laravel-framework): %v", err)
	}
	out, err := exec.Command("php", "testdata/make.php").Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	testgolden.Check(t, golden, readings(t, out))
}

func TestWhatIsNoSerializedPHPIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                  "",
		"half a text":              `s:10:"short";`,
		"a length that overflows":  `s:99999999999:"x";`,
		"a negative length":        `a:-1:{}`,
		"fewer elements than said": `a:2:{i:0;i:1;}`,
		"a reference to the front": `a:1:{i:0;r:9;}`,
		"a float of letters":       `d:1x;`,
		"something behind the end": `i:1;i:2;`,
		"an array as a key":        `a:1:{a:0:{}i:1;}`,
		"too deep":                 strings.Repeat(`a:1:{i:0;`, 70) + "N;" + strings.Repeat("}", 70),
		"too many values":          fmt.Sprintf("a:30000:{%s}", strings.Repeat("i:0;N;", 30_000)),
		"a custom object cut off":  `C:3:"Foo":50:{abc}`,
	} {
		if v, err := phpjob.ReadValue(text); !errors.Is(err, phpjob.ErrSerialized) {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
}

func TestReferencesAreNotExpanded(t *testing.T) {
	// Each array refers to the one before twice: 2^20 values if they were expanded.
	var b strings.Builder
	b.WriteString(`a:21:{i:0;a:1:{i:0;s:1:"x";}`)
	slot := 2
	for i := 1; i <= 20; i++ {
		fmt.Fprintf(&b, `i:%d;a:2:{i:0;R:%d;i:1;R:%d;}`, i, slot, slot)
		slot += map[bool]int{true: 2, false: 1}[i == 1]
	}
	b.WriteString("}")
	v, err := phpjob.ReadValue(b.String())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(v.Plain()); err != nil || len(text) > 2000 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	cyclic, err := phpjob.ReadValue(`O:3:"Foo":1:{s:4:"self";r:1;}`)
	if text, e := json.Marshal(cyclic.Plain()); err != nil || e != nil ||
		string(text) != `{"(class)":"Foo","self":"(the same Foo as before)"}` {
		t.Errorf("%s %v %v", text, err, e)
	}
}

func TestWhatIsShownOfUnusualValues(t *testing.T) {
	for text, want := range map[string]string{
		`E:11:"Suit:Hearts";`:                    `"Suit::Hearts"`,
		`d:INF;`:                                 `"+Inf"`,
		`d:0.5;`:                                 `0.5`,
		`i:-9223372036854775808;`:                `-9223372036854775808`,
		"s:2:\"\xc3\x28\";":                      `"�("`,
		`s:26:"O:3:"Foo":1:{s:1:"a";i:1;}";`:     `"(serialized PHP)"`,
		`C:26:"Opis\Closure\SerializableX":1:{}`: ``,
		`C:7:"MyThing":3:{abc}`:                  `"(MyThing)"`,
		`a:2:{i:0;i:1;i:2;i:3;}`:                 `{"0":1,"2":3}`,
		`O:29:"Illuminate\Support\Collection":1:{s:8:"` + "\x00*\x00items" + `";a:2:{i:0;i:7;i:1;i:8;}}`: `[7,8]`,
	} {
		v, err := phpjob.ReadValue(text)
		if want == "" {
			if err == nil {
				t.Errorf("%s: no error", text)
			}
			continue
		}
		if shown, e := json.Marshal(v.Plain()); err != nil || e != nil || string(shown) != want {
			t.Errorf("%s: %s, %v %v", text, shown, err, e)
		}
	}
}

func TestTheBeginningOfALargePayloadSaysWhatItHas(t *testing.T) {
	j := phpjob.Read([]byte(`{"displayName":"App\\Jobs\\Big","job":"x@call","maxTries":3,"data":{"comm`))
	if j.DisplayName != `App\Jobs\Big` || j.MaxTries == nil || *j.MaxTries != 3 || j.Problem == "" {
		t.Errorf("%+v", j)
	}
}

func TestARetriedJobHasItsTimeAgain(t *testing.T) {
	now, hour := time.Unix(2_000_000_000, 0), time.Hour
	const body = `"data":{"command":"O:1:\"X\":0:{}"},"attempts":4}`
	for name, c := range map[string]struct {
		raw      string
		enqueued time.Time
		want     string
	}{
		"an hour from the history": {`{"retryUntil":1000003600,` + body, time.Unix(1_000_000_000, 0),
			`"retryUntil":2000003600,`},
		"by the payload's own time": {`{"createdAt":1000000000,"retryUntil":1000007200,` + body, time.Unix(1, 0),
			`"retryUntil":2000007200,`},
		"nobody knows when":       {`{"retryUntil":1000003600,` + body, time.Time{}, `"retryUntil":null,`},
		"it has no limit of time": {`{"retryUntil":null,` + body, now.Add(-hour), `"retryUntil":null,`},
		"as older versions called it": {`{"timeoutAt":1000000060,` + body, time.Unix(1_000_000_000, 0),
			`"timeoutAt":2000000060,`},
	} {
		got := string(phpjob.Retried([]byte(c.raw), c.enqueued, now))
		if !strings.Contains(got, c.want) || !strings.HasSuffix(got, strings.Replace(body, `:4}`, `:0}`, 1)) {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, raw := range []string{"", "no JSON", "[1]", `{"a":`} {
		if got := string(phpjob.Retried([]byte(raw), now, now)); got != raw {
			t.Errorf("%q became %q", raw, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	file, err := os.ReadFile("testdata/payloads.json")
	if err != nil {
		f.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(file, &all); err != nil {
		f.Fatal(err)
	}
	for _, raw := range all {
		f.Add(string(raw))
	}
	f.Fuzz(func(t *testing.T, raw string) {
		j := phpjob.Read([]byte(raw))
		text, err := json.Marshal(j)
		if err != nil {
			t.Fatalf("what was read is no JSON: %v", err)
		}
		if len(text) > 40*len(raw)+4096 {
			t.Errorf("%d bytes were read as %d", len(raw), len(text))
		}
		if again := phpjob.Retried([]byte(raw), time.Unix(1, 0), time.Unix(2, 0)); json.Valid([]byte(raw)) &&
			!json.Valid(again) {
			t.Errorf("%q became %q", raw, again)
		}
	})
}

func FuzzReadValue(f *testing.F) {
	for _, text := range []string{`i:1;`, `a:1:{s:1:"a";b:1;}`, `O:3:"Foo":1:{s:4:"self";r:1;}`, `E:11:"Suit:Hearts";`,
		`C:3:"Foo":3:{abc}`, `d:0.1;`, "O:1:\"X\":1:{s:4:\"\x00*\x00a\";R:1;}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := phpjob.ReadValue(text)
		if err != nil {
			return
		}
		if _, err := json.Marshal(v.Plain()); err != nil {
			t.Fatal(err)
		}
	})
}
