package cms

import "slices"

// row is one row of content with what other tables say of it.
type row struct {
	id, key, prefix  string
	title, image     string
	content, summary string
	created, updated wallTime
	extra            *extra
}

// batch is some rows in the order of their ids. Their short texts are gathered
// in one buffer and made strings once a batch: a million rows of four texts
// would else be four million allocations.
type batch struct {
	rows    []row
	numeric bool // ids are numbers
	buffer  []byte
	spans   []spans
	next    int            // the row that is probably asked for next
	at      map[string]int // rows by ids that are no numbers
}

// spans are where a row's texts lie in the buffer.
type spans struct{ id, title, image, content, summary, key, slugID span }

type span struct{ from, to int }

func (s span) in(text string) string { return text[s.from:s.to] }

func (s span) empty() bool { return s.from == s.to }

func (b *batch) begin() {
	b.rows, b.spans, b.buffer, b.next, b.at = b.rows[:0], b.spans[:0], b.buffer[:0], 0, nil
}

func (b *batch) keep(text []byte) span {
	from := len(b.buffer)
	b.buffer = append(b.buffer, text...)
	return span{from, len(b.buffer)}
}

// add appends a row; its texts are there after settle.
func (b *batch) add(r row, id, title, image, content, summary []byte) {
	b.rows = append(b.rows, r)
	b.spans = append(b.spans, spans{id: b.keep(id), title: b.keep(title), image: b.keep(image),
		content: b.keep(content), summary: b.keep(summary)})
}

// settle gives the rows their own texts.
func (b *batch) settle() {
	text := string(b.buffer)
	for i := range b.rows {
		r, s := &b.rows[i], &b.spans[i]
		r.id, r.title, r.image = s.id.in(text), s.title.in(text), s.image.in(text)
		r.content, r.summary = s.content.in(text), s.summary.in(text)
	}
	b.buffer = b.buffer[:0]
}

// slug notes a slug of row i. The table has no unique key: of several slugs of
// an item the oldest is the one that counts, as the CMS has it.
func (b *batch) slug(i int, id, key []byte, prefix string) {
	s := &b.spans[i]
	if !s.slugID.empty() && !older(string(id), string(b.buffer[s.slugID.from:s.slugID.to])) {
		return
	}
	s.slugID, s.key = b.keep(id), b.keep(key)
	b.rows[i].prefix = prefix
}

// settleSlugs gives the rows their keys.
func (b *batch) settleSlugs() {
	text := string(b.buffer)
	for i := range b.rows {
		b.rows[i].key = b.spans[i].key.in(text)
	}
}

// find is the place of the row with an id, -1 when the batch has none. Other
// tables mostly give their rows in the same order.
func (b *batch) find(id []byte) int {
	if b.next < len(b.rows) && b.rows[b.next].id == string(id) {
		b.next++
		return b.next - 1
	}
	i, found := b.search(string(id))
	if !found {
		return -1
	}
	b.next = i + 1
	return i
}

func (b *batch) search(id string) (int, bool) {
	if b.numeric {
		return slices.BinarySearchFunc(b.rows, id, func(r row, id string) int { return byAge(r.id, id) })
	}
	if b.at == nil { // the database's order of texts is its own affair
		b.at = make(map[string]int, len(b.rows))
		for i := range b.rows {
			b.at[b.rows[i].id] = i
		}
	}
	i, found := b.at[id]
	return i, found
}

// row is the row with an id, nil when the batch has none.
func (b *batch) row(id string) *row {
	if i := b.find([]byte(id)); i >= 0 {
		return &b.rows[i]
	}
	return nil
}
