package main

import "strings"

// The demo's language: enough words for a small town's site.
var (
	demoNouns = []string{"Harbour", "Lighthouse", "Ferry", "Market", "Museum", "Garden", "Bridge", "Library", "Bakery", "Workshop", "Island", "Theatre",
		"Orchard", "Mill", "Railway", "Quay", "School", "Choir", "Regatta", "Kitchen", "Archive", "Tide", "Chapel", "Meadow"}
	demoWords = []string{"Quiet", "Bright", "Old", "New", "Hidden", "Northern", "Small", "Open", "Blue", "Early", "Late", "Slow", "Winter", "Summer", "Famous", "Forgotten"}
	demoVerbs = []string{"opens", "returns", "grows", "celebrates", "changes", "needs help", "moves", "wins a prize", "closes for repairs", "looks for friends"}
	demoTails = []string{"this weekend", "after ten years", "for everyone", "again", "with a new roof", "in the old town", "beside the water", "before the season"}
)

func (w *demoWriter) pick(args []string) string { return args[w.random.IntN(len(args))] }

func (w *demoWriter) title() string {
	return w.pick(demoWords) + " " + strings.ToLower(w.pick(demoNouns)) + " " + w.pick(demoVerbs) + " " + w.pick(demoTails)
}

func (w *demoWriter) sentence() string {
	return "The " + strings.ToLower(w.pick(demoWords)+" "+w.pick(demoNouns)) + " " + w.pick(demoVerbs) + " " + w.pick(demoTails) + "."
}

func (w *demoWriter) text(paragraphs int) string {
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
