package summary

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web/format"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

// View is a summary as people read it. The zero value says nothing.
type View struct {
	Sentences []string
	Tables    []Table
}

// Table is a list of a summary. Left is how many rows are not shown.
type Table struct {
	Columns []string
	Rows    [][]string
	Left    int
}

// Empty says that there is nothing to read.
func (v View) Empty() bool { return len(v.Sentences)+len(v.Tables) == 0 }

// What is shown; the JSON of a result has all.
const (
	shownRows  = 20
	shownValue = 300
)

// Of reads a result, whose secrets are masked, in the words of its type. Of a type that
// has none, or that says otherwise now, the fields are shown.
func Of(lang locale.Printer, types *jobs.Registry, jobType string, result json.RawMessage) View {
	if len(result) == 0 {
		return View{}
	}
	entry, known := types.Lookup(jobType)
	if known && entry.Summary != nil {
		if s, err := entry.Summary(result); err == nil {
			return In(lang, s)
		}
	}
	return fieldsOf(lang, result)
}

// In puts a summary into a language.
func In(lang locale.Printer, s phrase.Summary) (v View) {
	for _, sentence := range s.Sentences {
		args := make([]any, len(sentence.Args))
		for i, arg := range sentence.Args {
			args[i] = valueText(arg)
		}
		v.Sentences = append(v.Sentences, lang.Sentence(sentence.Form, args))
	}
	for _, t := range s.Tables {
		table := Table{Left: max(len(t.Rows)-shownRows, 0)}
		for _, column := range t.Columns {
			table.Columns = append(table.Columns, lang.Sentence(column, nil))
		}
		for _, row := range t.Rows[:min(len(t.Rows), shownRows)] {
			cells := make([]string, len(row))
			for i, value := range row {
				cells[i] = lang.Sentence("%s", []any{valueText(value)})
			}
			table.Rows = append(table.Rows, cells)
		}
		v.Tables = append(v.Tables, table)
	}
	return v
}

// valueText is a value of a summary as the pages write it.
func valueText(value any) string {
	switch v := value.(type) {
	case int:
		return format.Number(v)
	case int64:
		return format.Number(v)
	case phrase.Size:
		return format.Bytes(int64(v))
	case time.Duration:
		return format.Duration(v)
	case time.Time:
		return v.UTC().Format("2006-01-02 15:04") + " UTC"
	}
	return redact.Clip(fmt.Sprint(value), shownValue)
}

// fieldsOf is a result whose type is not known here: a row for each field of an object,
// those inside it written as one line.
func fieldsOf(lang locale.Printer, result json.RawMessage) View {
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(result, &fields) != nil || len(fields) == 0 {
		return View{}
	}
	rows := make([][]string, 0, len(fields))
	for name, value := range fields {
		rows = append(rows, []string{redact.Clip(name, shownValue), redact.Clip(fieldText(value), shownValue)})
	}
	slices.SortFunc(rows, func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	return View{Tables: []Table{{
		Columns: []string{lang.Text("result.field"), lang.Text("result.value")},
		Rows:    rows[:min(len(rows), shownRows)], Left: max(len(rows)-shownRows, 0)}}}
}

// fieldText is a value of JSON as a text: without quotes, lists of texts joined.
func fieldText(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	var list []string
	if json.Unmarshal(value, &list) == nil {
		return strings.Join(list, ", ")
	}
	var line bytes.Buffer
	if json.Compact(&line, value) != nil {
		return string(value)
	}
	return line.String()
}
