package locale

import (
	"fmt"
	"io/fs"
	"maps"

	"go.yaml.in/yaml/v3"

	"github.com/cmsjobs/cmsjobs/internal/display"
)

// Language is one that the pages speak.
type Language struct{ Code, Name string }

// Languages of the pages; the first one serves where no other fits.
func Languages() []Language { return []Language{{"en", "English"}, {"vi", "Tiếng Việt"}} }

// texts of one language: of pages by key, and of errors by their English form.
type texts struct {
	Errors map[string]string `yaml:"errors"`
	Pages  map[string]string `yaml:",inline"`
}

// Catalog holds the texts of all languages.
type Catalog struct{ byLanguage map[string]texts }

// Load reads LANGUAGE.yaml of each folder; a key may be in one of them only.
func Load(folders ...fs.FS) (*Catalog, error) {
	c := &Catalog{byLanguage: map[string]texts{}}
	for _, language := range Languages() {
		all := texts{Errors: map[string]string{}, Pages: map[string]string{}}
		for _, folder := range folders {
			raw, err := fs.ReadFile(folder, language.Code+".yaml")
			if err != nil {
				return nil, err
			}
			var read texts
			if err := yaml.Unmarshal(raw, &read); err != nil {
				return nil, fmt.Errorf("reading %s.yaml: %w", language.Code, err)
			}
			for key := range read.Pages {
				if _, twice := all.Pages[key]; twice {
					return nil, fmt.Errorf("the text %s is in two files %s.yaml", key, language.Code)
				}
			}
			maps.Copy(all.Pages, read.Pages)
			maps.Copy(all.Errors, read.Errors)
		}
		c.byLanguage[language.Code] = all
	}
	return c, nil
}

// Known says whether the pages speak a language.
func (c *Catalog) Known(language string) bool {
	_, known := c.byLanguage[language]
	return known
}

// Pages are the texts of a language by key.
func (c *Catalog) Pages(language string) map[string]string {
	return maps.Clone(c.byLanguage[language].Pages)
}

// Errors are the sentences of a language by their English form.
func (c *Catalog) Errors(language string) map[string]string {
	return maps.Clone(c.byLanguage[language].Errors)
}

// In is the catalog in one language.
func (c *Catalog) In(language string) Printer {
	return Printer{Language: language, texts: c.byLanguage[language]}
}

// Printer writes texts in one language.
type Printer struct {
	Language string
	texts    texts
}

// Text is the text of a key with its values filled in, plural forms included
// (see [display.Forms]).
func (p Printer) Text(key string, args ...any) string {
	text, known := p.texts.Pages[key]
	if !known {
		return "⟨" + key + "⟩"
	}
	if len(args) == 0 {
		return text
	}
	return display.Sprintf(text, args...)
}

// Name is the text of prefix and word, or the word itself where there is none:
// for words that others choose.
func (p Printer) Name(prefix, word string) string {
	if text, known := p.texts.Pages[prefix+word]; known {
		return text
	}
	return word
}

// Sentence is an English sentence, made of a form and its values, in this
// language; values that have a translation get it, too.
func (p Printer) Sentence(form string, args []any) string {
	if text, known := p.texts.Errors[form]; known {
		form = text
	}
	local := make([]any, len(args))
	for i, arg := range args {
		local[i] = arg
		if word, isText := arg.(string); isText && p.texts.Errors[word] != "" {
			local[i] = p.texts.Errors[word]
		}
	}
	return display.Sprintf(form, local...)
}
