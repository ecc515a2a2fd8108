package phrase

// Sentence is a text that can be translated: a form with a %s for each value.
//
// Values are numbers, texts, times, lengths of time, and [Size]s. Who shows the sentence
// writes them as its readers are used to, and chooses plural forms ("%s {file|files}")
// by the value before them.
type Sentence struct {
	Form string
	Args []any
}

// Size is a number of bytes.
type Size int64

// Table is a list that belongs to a summary.
type Table struct {
	Columns []string // English names, which can be translated
	Rows    [][]any  // values as those of a Sentence
}

// Summary is what happened, in a few sentences, with the lists that belong to it. The
// zero value is empty.
type Summary struct {
	Sentences []Sentence
	Tables    []Table
}

// Say adds a sentence.
func (s *Summary) Say(form string, args ...any) {
	s.Sentences = append(s.Sentences, Sentence{form, args})
}

// Count adds a sentence whose first value is n, unless n is 0.
func Count[N ~int | ~int64](s *Summary, n N, form string, args ...any) {
	if n != 0 {
		s.Say(form, append([]any{n}, args...)...)
	}
}

// Columns are the English names of a table's columns.
func Columns(names ...string) []string { return names }

// List adds a table with a row for each item, unless there are none.
func List[T any](s *Summary, columns []string, items []T, row func(T) []any) {
	if len(items) == 0 {
		return
	}
	t := Table{Columns: columns}
	for _, item := range items {
		t.Rows = append(t.Rows, row(item))
	}
	s.Tables = append(s.Tables, t)
}

// Lines adds a table with one column, unless there are no lines.
func Lines(s *Summary, columns []string, lines []string) {
	List(s, columns, lines, func(line string) []any { return []any{line} })
}
