package texts

import (
	_ "embed" // texts.yaml
	"fmt"
	"maps"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed texts.yaml
var file []byte

// byLanguage is read at the first use: the file is part of the program, so that a
// fault in it is a mistake of the program.
var byLanguage = sync.OnceValue(func() map[string]map[string]map[string]string {
	var types map[string]map[string]map[string]string // type, field, language
	if err := yaml.Unmarshal(file, &types); err != nil {
		panic(fmt.Sprintf("texts.yaml: %v", err))
	}
	all := map[string]map[string]map[string]string{}
	for jobType, fields := range types {
		for path, languages := range fields {
			for language, text := range languages {
				if all[language] == nil {
					all[language] = map[string]map[string]string{}
				}
				if all[language][jobType] == nil {
					all[language][jobType] = map[string]string{}
				}
				all[language][jobType][path] = text
			}
		}
	}
	return all
})

// About is the key of the text that says what a type does.
const About = "about"

// Of is the text of a field, named with the objects around it (dateRange.start),
// or of About. Languages without a text get the English one; "" is none.
func Of(language, jobType, path string) string {
	if text := byLanguage()[language][jobType][path]; text != "" {
		return text
	}
	return byLanguage()["en"][jobType][path]
}

// All are the texts of a language by type and field.
func All(language string) map[string]map[string]string { return maps.Clone(byLanguage()[language]) }
