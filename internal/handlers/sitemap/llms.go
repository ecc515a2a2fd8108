package sitemap

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The site's llms.txt (llmstxt.org): a title, a summary, and links with their
// names, for language models that cannot read the whole site.
const (
	llmsName = "llms.txt"
	// llmsLinks is how many rows of one kind of content are named, the newest.
	llmsLinks = 100
	// llmsTitle is how many characters of a title are shown.
	llmsTitle = 200
)

// link is one line of llms.txt.
type link struct{ loc, title string }

// section keeps the newest links of one kind of content, in the order of
// reading. Its memory does not grow with their number.
type section struct {
	name  string
	links []link
	next  int // where the oldest is, once it is full
}

func (s *section) add(e *entry) {
	if e.title == "" {
		return
	}
	l := link{strings.Clone(e.loc), strings.Clone(e.title)} // an entry is good until the next one
	if len(s.links) < llmsLinks {
		s.links = append(s.links, l)
		return
	}
	s.links[s.next] = l
	s.next = (s.next + 1) % llmsLinks
}

// newest lists the links, the newest first.
func (s *section) newest() []link {
	list := append(slices.Clone(s.links[s.next:]), s.links[:s.next]...)
	slices.Reverse(list)
	return list
}

// llms writes the site's llms.txt, or removes it where the site is listed
// nowhere. A file that is not ours stays as it is.
func (h *Handler) llms(p *plan, sections []section, listed bool) (err error) {
	if !p.options.LLMs || h.site.Public() == "" {
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing %s: %w", llmsName, err)
		}
	}()
	root, err := os.OpenRoot(h.site.Public())
	if err != nil {
		return err
	}
	defer root.Close()
	old, err := readSmall(root, llmsName)
	switch {
	case err != nil:
		return err
	case old != "" && !strings.Contains(old, marker):
		return errors.New("another program made the one that is there: remove it, or set sitemap.llms to false")
	case !listed:
		if err := root.Remove(llmsName); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if text := p.llmsText(sections); text != old {
		return writeSmall(root, llmsName, text)
	}
	return nil
}

func (p *plan) llmsText(sections []section) string {
	var b strings.Builder
	b.WriteString("# " + plainText(p.publication, p.links.Root) + "\n\n")
	if p.summary != "" {
		b.WriteString("> " + plainText(p.summary, "") + "\n\n")
	}
	b.WriteString(marker + "\n")
	for _, s := range sections {
		if len(s.links) == 0 {
			continue
		}
		b.WriteString("\n## " + strings.ToUpper(s.name[:1]) + s.name[1:] + "\n\n")
		for _, l := range s.newest() {
			if b.Len() > maxSmall-8*maxLoc { // it must be readable again
				return b.String()
			}
			b.WriteString("- [" + plainText(l.title, l.loc) + "](" + linkTarget.Replace(l.loc) + ")\n")
		}
	}
	return b.String()
}

// linkTarget escapes what would end a link of Markdown.
var linkTarget = strings.NewReplacer("(", "%28", ")", "%29", " ", "%20", "<", "%3C", ">", "%3E")

// plainText makes a text of the site one line of Markdown without marks.
func plainText(text, otherwise string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	if utf8.RuneCountInString(text) > llmsTitle {
		text = string([]rune(text)[:llmsTitle-1]) + "…"
	}
	if text == "" {
		return otherwise
	}
	return markdown.Replace(text)
}

var markdown = strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, "<", "&lt;", "*", `\*`, "_", `\_`, "`", "\\`")
