package texts

import (
	"embed"
	"fmt"
	"maps"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed en.yaml vi.yaml
var files embed.FS

// languages are read at the first use: the files are part of the program, so that
// a fault in them is a mistake of the program.
var languages = sync.OnceValue(func() map[string]map[string]map[string]string {
	all := map[string]map[string]map[string]string{}
	for _, language := range []string{"en", "vi"} {
		raw, err := files.ReadFile(language + ".yaml")
		texts := map[string]map[string]string{}
		if err == nil {
			err = yaml.Unmarshal(raw, &texts)
		}
		if err != nil {
			panic(fmt.Sprintf("texts: %s.yaml: %v", language, err))
		}
		all[language] = texts
	}
	return all
})

// About is the key of the text that says what a type does.
const About = "about"

// Of is the text of a field, named with the objects around it (dateRange.start),
// or of About. Languages without a text get the English one; "" is none.
func Of(language, jobType, path string) string {
	if text := languages()[language][jobType][path]; text != "" {
		return text
	}
	return languages()["en"][jobType][path]
}

// All are the texts of a language by type and field.
func All(language string) map[string]map[string]string { return maps.Clone(languages()[language]) }
