package phprows

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// envelope is what is read of a payload as Laravel writes it; the command in it is
// never looked into.
type envelope struct {
	UUID        string          `json:"uuid"`
	DisplayName string          `json:"displayName"`
	Job         string          `json:"job"`
	Timeout     json.RawMessage `json:"timeout"`
	Backoff     json.RawMessage `json:"backoff"`
	Delay       json.RawMessage `json:"delay"`
}

// readEnvelope reads a payload, or the beginning of one. ok is false where it names
// no job.
func readEnvelope(payload []byte, whole bool) (e envelope, ok bool) {
	if whole {
		if json.Unmarshal(payload, &e) != nil {
			// A key of another type than Laravel writes: the others are read one by one.
			e = openingOf(payload)
		}
	} else {
		e = openingOf(payload)
	}
	return e, e.Job != ""
}

// openingOf reads the keys that a beginning of a payload has whole. Laravel writes
// the command, which makes payloads large, behind all others.
func openingOf(beginning []byte) (e envelope) {
	d := json.NewDecoder(bytes.NewReader(beginning))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return e
	}
	texts := map[string]*string{"uuid": &e.UUID, "displayName": &e.DisplayName, "job": &e.Job}
	raws := map[string]*json.RawMessage{"timeout": &e.Timeout, "backoff": &e.Backoff, "delay": &e.Delay}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			break
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			break
		}
		name, _ := key.(string)
		if into := texts[name]; into != nil {
			_ = json.Unmarshal(value, into) // no text: it stays empty
		}
		if into := raws[name]; into != nil {
			*into = value
		}
	}
	return e
}

// timeout is the payload's time-out; none says that it names 0, which is no limit.
func (e *envelope) timeout() (limit time.Duration, none bool) {
	seconds, named := wholeNumber(e.Timeout)
	return time.Duration(seconds) * time.Second, named && seconds == 0
}

// backoff are the payload's waits: a number, or a text of numbers with commas.
func (e *envelope) backoff() (waits []time.Duration) {
	text := cmp.Or(strings.Trim(string(e.Backoff), `"`), "null")
	if text == "null" {
		text = strings.Trim(string(e.Delay), `"`)
	}
	for part := range strings.SplitSeq(text, ",") {
		seconds, named := wholeNumber([]byte(strings.TrimSpace(part)))
		if !named || len(waits) == 100 {
			break
		}
		waits = append(waits, time.Duration(seconds)*time.Second)
	}
	return waits
}

// wholeNumber reads 3 and "3"; ok is false for anything else, and below 0.
func wholeNumber(raw []byte) (n int64, ok bool) {
	n, err := strconv.ParseInt(strings.Trim(string(raw), `"`), 10, 32)
	return max(n, 0), err == nil && n >= 0
}
