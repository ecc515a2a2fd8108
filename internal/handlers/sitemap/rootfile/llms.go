package rootfile

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

const (
	llmsName = "llms.txt"
	// maxLinks is how many links of one section are named, the newest.
	maxLinks = 100
	// maxAddress is how long an address can be, in bytes: sitemaps allow no longer one.
	maxAddress = 2047
	// maxTitle is how many characters of a title are shown.
	maxTitle = 200
)

// LLMs is a site's llms.txt (llmstxt.org): a title, a summary, and links with their
// names, for language models that cannot read the whole site.
type LLMs struct {
	// Title is the site's name; Address stands for it where it has none.
	Title, Address string
	Summary        string // "" is none
	// Marker is in each file of ours. A file without it is left alone.
	Marker   string
	Sections []Section
}

// Section keeps the newest links of one kind of content. Its memory does not grow with
// their number.
type Section struct {
	// Name heads it, with a capital.
	Name  string
	links []link // in the order of reading
	next  int    // where the oldest is, once it is full
}

type link struct{ address, title string }

// Add takes a link that is newer than those before; one without a title is left out.
// It keeps nothing of the strings' memory.
func (s *Section) Add(address, title string) {
	if title == "" {
		return
	}
	l := link{strings.Clone(address), strings.Clone(title)}
	if len(s.links) < maxLinks {
		s.links = append(s.links, l)
		return
	}
	s.links[s.next] = l
	s.next = (s.next + 1) % maxLinks
}

// newest lists the links, the newest first.
func (s *Section) newest() []link {
	list := append(slices.Clone(s.links[s.next:]), s.links[:s.next]...)
	slices.Reverse(list)
	return list
}

// Write writes the file into the web server's folder dir, or removes it where the site
// is listed nowhere. A file that is not ours stays as it is, which is an error.
func (l LLMs) Write(dir string, listed bool) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing %s: %w", llmsName, err)
		}
	}()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	old, err := read(root, llmsName)
	switch {
	case err != nil:
		return err
	case old != "" && !strings.Contains(old, l.Marker):
		return errors.New("another program made the one that is there: remove it, or set sitemap.llms to false")
	case !listed:
		if err := root.Remove(llmsName); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if text := l.text(); text != old {
		return write(root, llmsName, text)
	}
	return nil
}

func (l LLMs) text() string {
	var b strings.Builder
	b.WriteString("# " + plainText(l.Title, l.Address) + "\n\n")
	if l.Summary != "" {
		b.WriteString("> " + plainText(l.Summary, "") + "\n\n")
	}
	b.WriteString(l.Marker + "\n")
	for _, s := range l.Sections {
		if len(s.links) == 0 {
			continue
		}
		b.WriteString("\n## " + strings.ToUpper(s.Name[:1]) + s.Name[1:] + "\n\n")
		for _, x := range s.newest() {
			if b.Len() > maxBytes-8*maxAddress { // it must be readable again
				return b.String()
			}
			b.WriteString("- [" + plainText(x.title, x.address) + "](" + linkTarget.Replace(x.address) + ")\n")
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
	if utf8.RuneCountInString(text) > maxTitle {
		text = string([]rune(text)[:maxTitle-1]) + "…"
	}
	if text == "" {
		return otherwise
	}
	return markdown.Replace(text)
}

var markdown = strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, "<", "&lt;", "*", `\*`, "_", `\_`, "`", "\\`")
