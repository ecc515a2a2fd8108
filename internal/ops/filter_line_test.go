package ops_test

import (
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/ops"
)

// A line says the same as the fields of a query.
func TestALineIsAFilter(t *testing.T) {
	for line, want := range map[string]string{
		"type:mail.send queue:default,mail status:failed": "queue=default&queue=mail&status=failed&type=mail.send",
		`tag:"App\Models\Post:5" worker:web-1 id:abc`:     "ids=abc&tag=App%5CModels%5CPost%3A5&worker=web-1",
		`"connection refused"`:                            "text=connection+refused",
		"connection refused":                              "text=connection+refused",
		`type:mail.send "status:failed"`:                  "text=status%3Afailed&type=mail.send",
		"https://example.org/a":                           "text=https%3A%2F%2Fexample.org%2Fa",
		`"an open quote`:                                  "text=an+open+quote",
		"type: since:24h":                                 "since=24h",
		`tag:"two words" tag:two`:                         "tag=two+words&tag=two",
		"Type:a type:a STATUS:failed":                     "status=failed&type=a",
		"":                                                "",
	} {
		var f ops.Filter
		if err := f.Add(line); err != nil || f.Query().Encode() != want {
			t.Errorf("%s is %s (%v), want %s", line, f.Query().Encode(), err, want)
		}
		if again := ops.FilterOf(f.Query()); !reflect.DeepEqual(again, f) && !f.Empty() {
			t.Errorf("%s: %+v is read again as %+v", line, f, again)
		}
	}
}

func TestALineAddsToAFilter(t *testing.T) {
	f := ops.FilterOf(url.Values{"type": {"a"}, "text": {"old"}, "q": {`type:b "new text" since:1h`}})
	if got := f.Query().Encode(); got != "since=1h&text=new+text&type=a&type=b" {
		t.Errorf("%s", got)
	}
}

// A qualifier that is misspelt is no text to search for: nobody would notice.
func TestAMisspeltQualifierIsRefused(t *testing.T) {
	for _, line := range []string{"typ:mail.send", "quue:default", "statsu:failed"} {
		f := ops.FilterOf(url.Values{"q": {line}})
		if _, err := f.Parse(time.Now()); err == nil || !strings.Contains(err.Error(), "did you mean") {
			t.Errorf("%s: %v", line, err)
		}
	}
	f := ops.FilterOf(url.Values{"q": {strings.Repeat("x", 5000)}})
	if _, err := f.Parse(time.Now()); err == nil {
		t.Error("a line without end is taken")
	}
}

// Each token leads to the filter without it.
func TestTokensCanBeTakenAway(t *testing.T) {
	f := ops.Filter{Type: []string{"a", "b"}, Tag: []string{"t"}, Text: "x"}
	got := map[string]string{}
	for _, token := range f.Tokens() {
		got[token.Name+":"+token.Value] = token.Without.Query().Encode()
	}
	want := map[string]string{"type:a": "tag=t&text=x&type=b", "type:b": "tag=t&text=x&type=a",
		"tag:t": "text=x&type=a&type=b", "text:x": "tag=t&type=a&type=b"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}
