package demo

import "strings"

// The demo's language: enough words for a small town's site.
var (
	nouns = []string{"Harbour", "Lighthouse", "Ferry", "Market", "Museum", "Garden", "Bridge", "Library", "Bakery",
		"Workshop", "Island", "Theatre",
		"Orchard", "Mill", "Railway", "Quay", "School", "Choir", "Regatta", "Kitchen", "Archive", "Tide", "Chapel",
		"Meadow"}
	adjectives = []string{"Quiet", "Bright", "Old", "New", "Hidden", "Northern", "Small", "Open", "Blue", "Early",
		"Late", "Slow", "Winter", "Summer", "Famous", "Forgotten"}
	verbs = []string{"opens", "returns", "grows", "celebrates", "changes", "needs help", "moves", "wins a prize",
		"closes for repairs", "looks for friends"}
	tails = []string{"this weekend", "after ten years", "for everyone", "again", "with a new roof",
		"in the old town", "beside the water", "before the season"}
)

func (w *writer) pick(args []string) string { return args[w.random.IntN(len(args))] }

func (w *writer) title() string {
	return w.pick(adjectives) + " " + strings.ToLower(w.pick(nouns)) + " " + w.pick(verbs) + " " + w.pick(tails)
}

func (w *writer) sentence() string {
	return "The " + strings.ToLower(w.pick(adjectives)+" "+w.pick(nouns)) + " " + w.pick(verbs) + " " + w.pick(tails) +
		"."
}

func (w *writer) text(paragraphs int) string {
	var b strings.Builder
	for range paragraphs {
		b.WriteString("<p>")
		for range 4 + w.random.IntN(5) {
			b.WriteString(w.sentence())
			b.WriteByte(' ')
		}
		b.WriteString("</p>\n")
	}
	return b.String()
}
