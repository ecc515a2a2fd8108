package jobs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// editedFrom is the field of a job's metadata that names the job whose payload it
// has, edited.
const editedFrom = "editedFrom"

// The bounds of the jobs beside one.
const (
	equalAmong = 50
	equalShown = 5
	diffLines  = 400
)

// payloadEdit is what a person changed of another job's payload.
type payloadEdit struct {
	From  string // the other job's id
	Lines []diffLine
}

// diffLine is a line of both payloads (" "), of the old ("-") or of the new one ("+").
type diffLine struct{ Sign, Text string }

// edit compares a job with the one that it was made from; nil of any other job, and
// where that one is gone. Secrets are masked in both.
func (h handlers) edit(req *web.Request, r jobs.Record, v ops.JobView) *payloadEdit {
	envelope, _, err := jobs.Parse(r.Payload, req.Known)
	var metadata map[string]json.RawMessage
	var from string
	if err != nil || json.Unmarshal(envelope.Metadata, &metadata) != nil ||
		json.Unmarshal(metadata[editedFrom], &from) != nil || from == "" || len(from) > 64 {
		return nil
	}
	old, err := req.Ledger().Job(req.Ctx(), from)
	if err != nil || old.Type != r.Type {
		return nil
	}
	lines := diff(strings.Split(web.Pretty(req.View().Job(old).Payload), "\n"),
		strings.Split(web.Pretty(v.Payload), "\n"))
	if lines == nil {
		return nil
	}
	return &payloadEdit{from, lines}
}

// diff is the shortest way from one text to another, by lines; nil of long ones.
func diff(a, b []string) []diffLine {
	if len(a) > diffLines || len(b) > diffLines {
		return nil
	}
	common := make([][]int, len(a)+1) // the longest common part of a[i:] and b[j:]
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var lines []diffLine
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			lines = append(lines, diffLine{" ", a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			lines = append(lines, diffLine{"-", a[i]})
			i++
		default:
			lines = append(lines, diffLine{"+", b[j]})
			j++
		}
	}
	return lines
}

// equalBefore are the newest jobs of the same type with the same payload, among the
// newest of the type.
func (h handlers) equalBefore(req *web.Request, r jobs.Record) ([]ops.JobView, error) {
	data := payloadOf(req, r)
	if data == nil {
		return nil, nil
	}
	list, err := req.Ledger().Jobs(req.Ctx(), jobs.Filter{Types: []string{r.Type}},
		jobs.Page{Limit: equalAmong, Uncounted: true})
	if err != nil {
		return nil, fmt.Errorf("looking for equal jobs: %w", err)
	}
	equal := slices.DeleteFunc(list.Items, func(x jobs.Record) bool {
		return ops.IDOf(x) == ops.IDOf(r) || x.EnqueuedAt.After(r.EnqueuedAt) || !bytes.Equal(payloadOf(req, x), data)
	})
	return ops.Each(equal[:min(len(equal), equalShown)], req.View().Job), nil
}

// payloadOf is what a job is to do, compact; nil where that is not known: PHP's own,
// and jobs whose payload was not kept.
func payloadOf(req *web.Request, r jobs.Record) []byte {
	envelope, _, err := jobs.Parse(r.Payload, req.Known)
	if err != nil || r.Foreign || r.PayloadOmitted || len(envelope.Data) == 0 {
		return nil
	}
	var out bytes.Buffer
	if json.Compact(&out, envelope.Data) != nil {
		return nil
	}
	return out.Bytes()
}
