package config

import (
	"cmp"
	_ "embed"
	"encoding"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/knadh/koanf/v2"
)

//go:embed config.example.yaml
var example []byte

// Example is config.example.yaml: every key with its default and what it does.
func Example() []byte { return slices.Clone(example) }

// Flag is a value that was said on the command line.
type Flag struct {
	Path  string // queue.poll
	Value string
	Name  string // --poll, for people
}

// Sources are the places where configuration may stand.
type Sources struct {
	// File is the YAML file; "" takes CMSJOBS_CONFIG's, else ./cmsjobs.yaml and
	// /etc/cmsjobs/config.yaml where they are.
	File string
	// Environ is the environment as os.Environ gives it; Environment() is the
	// process's own.
	Environ []string
	// Flags win over everything.
	Flags []Flag
	// Site is which of the sites the configuration is for; "" is what all share, or the
	// only site of a file without sites.
	Site string
}

// Environment is the process's environment, for Sources.
func Environment() []string { return os.Environ() }

// NoColor says that the environment wants no colours (no-color.org): any value
// of NO_COLOR that is not empty.
func NoColor() bool { return os.Getenv("NO_COLOR") != "" }

// CollectorIsSet says that the environment says what Go's collector does: by GOGC.
func CollectorIsSet() bool { return os.Getenv("GOGC") != "" }

// ProcessorsAreSet says that the environment says how many processors Go uses: by GOMAXPROCS.
func ProcessorsAreSet() bool { return os.Getenv("GOMAXPROCS") != "" }

// Loaded is a configuration together with where its values came from.
type Loaded struct {
	Config
	// File that was read; "" when there is none.
	File string
	// Site is the name of the site that this is the configuration of; "" is what all
	// sites share, or the only site of a file without sites.
	Site string
	// Sites are the names of all sites of the file.
	Sites   []string
	origins map[string]string
	ownURL  bool // the site says http.url for itself
}

// Load reads and checks the whole configuration. The error, where it is
// Faults, names all that is wrong. What a site says for itself wins over what is
// said for all sites, wherever that stands; flags win over both.
func Load(s Sources) (*Loaded, error) {
	all := schema()
	r := &report{origins: map[string]string{}, site: s.Site}
	k := koanf.New(slash)
	l := &Loaded{Config: Default(), origins: r.origins, Site: s.Site}

	flags := fromFlags(s.Flags, all, r)
	own := ownEnvironment(s.Environ, all, r)
	specified := specifiedEnvironment(s.Environ)
	var yaml yamlFile
	var err error
	if l.File = fileOf(s); l.File != "" {
		if yaml, err = fromFile(l.File, all, r); err != nil {
			return nil, err
		}
	}
	l.Sites = yaml.names()
	site, err := yaml.siteOf(s.Site)
	if err != nil {
		return nil, err
	}
	var dotenv []setting
	if dir := lastOf("cms/dir", yaml.shared, specified, own, site, flags); dir != "" {
		if dotenv, err = fromDotenv(dir); err != nil {
			return nil, dotenvFault(err, filepath.Join(dir, ".env"), s.Site)
		}
	}
	for _, layer := range [][]setting{dotenv, yaml.shared, specified, own, site, flags} {
		if err := merge(k, layer, r.origins); err != nil {
			return nil, fmt.Errorf("merging the configuration: %w", err)
		}
	}
	l.fill(k, all, r)
	l.siteURL(site)
	l.Config.check(r)
	if len(r.faults) > 0 {
		return l, r.faults
	}
	return l, nil
}

// fileOf finds the YAML file. One that was asked for must be there.
func fileOf(s Sources) string {
	if s.File != "" {
		return s.File
	}
	for _, variable := range s.Environ {
		if value, found := strings.CutPrefix(variable, "CMSJOBS_CONFIG="); found && value != "" {
			return value
		}
	}
	for _, usual := range []string{"cmsjobs.yaml", "/etc/cmsjobs/config.yaml"} {
		if info, err := os.Stat(usual); err == nil && info.Mode().IsRegular() {
			return usual
		}
	}
	return ""
}

func fromFlags(flags []Flag, all []field, r *report) []setting {
	var layer []setting
	for _, f := range flags {
		path := slashed(f.Path)
		if !known(all, path) && !insidePayload(path) {
			r.faults = append(r.faults, Fault{Path: f.Path, Problem: "no such key" + meant(likely(path, all)),
				Origin: "flag " + f.Name})
			continue
		}
		layer = append(layer, setting{path, f.Value, "flag " + f.Name})
		if path == "queue/poll" {
			layer = append(layer, pollFirstBelow(f.Value, "flag "+f.Name)...)
		}
	}
	return layer
}

// slashed turns a path as people write it into ours. Names of types hold dots:
// types.sitemap.generate.timeout is types/sitemap.generate/timeout.
func slashed(path string) string {
	parts := strings.Split(path, ".")
	n := len(parts)
	switch {
	case n > 3 && parts[0] == "types":
		return "types/" + strings.Join(parts[1:n-1], ".") + slash + parts[n-1]
	case n > 4 && parts[0] == "schedule" && parts[1] == "entries" && !slices.Contains(parts[3:], "payload"):
		return "schedule/entries/" + strings.Join(parts[2:n-1], ".") + slash + parts[n-1]
	case n > 4 && parts[0] == "php" && parts[1] == "queues":
		return "php/queues/" + strings.Join(parts[2:n-1], ".") + slash + parts[n-1]
	}
	return strings.Join(parts, slash)
}

// lastOf is the value of a path in the last layer that has it.
func lastOf(path string, layers ...[]setting) string {
	value := ""
	for _, layer := range layers {
		for _, s := range layer {
			if s.path == path {
				value = fmt.Sprint(s.value)
			}
		}
	}
	return value
}

// fill decodes each key by itself, so that every fault is found and named.
func (l *Loaded) fill(k *koanf.Koanf, all []field, r *report) {
	root := reflect.ValueOf(&l.Config).Elem()
	for _, f := range all {
		if f.index == nil || !k.Exists(f.path) {
			continue
		}
		target := reflect.New(f.typ)
		if err := decode(k.Get(f.path), target.Interface()); err != nil {
			r.add(f.path, "%s", brief(err))
			continue
		}
		if f.typ.Kind() == reflect.Slice && target.Elem().Len() == 0 {
			target = reflect.New(f.typ) // an empty list is no list
		}
		root.FieldByIndex(f.index).Set(target.Elem())
	}
}

// brief takes mapstructure's frame off an error.
func brief(err error) string {
	text := strings.TrimPrefix(strings.TrimSpace(err.Error()), "decoding failed due to the following error(s):\n\n")
	text = strings.TrimPrefix(strings.TrimPrefix(text, "error decoding "), "'': ")
	return strings.Join(strings.Fields(strings.TrimPrefix(text, "'' ")), " ")
}

// Value is one key with its value and where that came from.
type Value struct {
	Path   string `json:"path"`
	Value  any    `json:"value"`
	Text   string `json:"-"`
	Origin string `json:"origin"` // "default" where nobody said anything
}

// Values lists every key with its value, secrets masked, in the order of the
// file.
func (l *Loaded) Values() []Value {
	root := reflect.ValueOf(&l.Config).Elem()
	var list []Value
	for _, f := range schema() {
		if f.index == nil {
			continue
		}
		v := root.FieldByIndex(f.index)
		if f.open() && f.typ.Elem().Kind() == reflect.Struct {
			list = append(list, l.valuesOfMap(f, v)...)
			continue
		}
		list = append(list, l.value(f.path, v))
	}
	return list
}

// valuesOfMap lists what was said below types and schedule.entries.
func (l *Loaded) valuesOfMap(f field, m reflect.Value) []Value {
	var list []Value
	names := m.MapKeys()
	slices.SortFunc(names, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, name := range names {
		for _, below := range fields(f.typ.Elem(), f.path+slash+name.String()+slash, nil) {
			if v := m.MapIndex(name).FieldByIndex(below.index); !v.IsZero() {
				list = append(list, l.value(below.path, v))
			}
		}
	}
	return list
}

func (l *Loaded) value(path string, v reflect.Value) Value {
	origin := cmp.Or(originOf(l.origins, path), "default")
	shown, text := show(v)
	return Value{Path: dotted(path), Value: shown, Text: text, Origin: origin}
}

// show gives a value for programs and for people. Secrets mask themselves.
func show(v reflect.Value) (any, string) {
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return formatDuration(x), formatDuration(x)
	case []time.Duration:
		words := make([]string, len(x))
		for i, d := range x {
			words[i] = formatDuration(d)
		}
		return words, strings.Join(words, ", ")
	case []string:
		return x, strings.Join(x, ", ")
	case encoding.TextMarshaler, fmt.Stringer:
		return fmt.Sprint(x), fmt.Sprint(x)
	}
	if (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0 {
		return v.Interface(), ""
	}
	return v.Interface(), fmt.Sprintf("%+v", v.Interface())
}
