package cms

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Application is what kind of Laravel application lies in a folder.
type Application string

// The applications that are known. Unknown is treated as Botble: a folder
// without composer.json may hold no more than its files.
const (
	Unknown  Application = ""
	Botble   Application = "Botble"
	Laravel  Application = "Laravel"
	October  Application = "October CMS"
	Winter   Application = "Winter CMS"
	Statamic Application = "Statamic"
	Filament Application = "Filament"
	Bagisto  Application = "Bagisto"
)

// Other says that the application is known and no Botble.
func (a Application) Other() bool { return a != Unknown && a != Botble }

// maxComposer bounds what is read of composer.json.
const maxComposer = 1 << 20

// Application tells by composer.json and by files what lies in the site's folder.
func (s *Site) Application() Application {
	if s.Root == "" {
		return Unknown
	}
	if s.has("platform/core") {
		return Botble
	}
	requires := s.requires()
	for _, known := range []struct {
		application Application
		packages    []string
		folder      string
	}{
		{Winter, []string{"winter/storm", "winter/wn-system-module"}, ""},
		{October, []string{"october/rain", "october/system", "october/all"}, ""},
		{Statamic, []string{"statamic/cms"}, ""},
		{Bagisto, []string{"bagisto/bagisto", "bagisto/laravel-datafaker"}, "packages/Webkul"},
		{Filament, []string{"filament/filament"}, ""},
		{Laravel, []string{"laravel/framework"}, ""},
	} {
		if slices.ContainsFunc(known.packages, func(name string) bool { return requires[name] }) ||
			known.folder != "" && s.has(known.folder) {
			return known.application
		}
	}
	return Unknown
}

func (s *Site) has(name string) bool {
	_, err := os.Stat(filepath.Join(s.Root, filepath.FromSlash(name)))
	return err == nil
}

// requires are the packages of composer.json, with its own name. A file that cannot
// be read says nothing.
func (s *Site) requires() map[string]bool {
	f, err := os.Open(filepath.Join(s.Root, "composer.json"))
	if err != nil {
		return nil
	}
	defer f.Close()
	var composer struct {
		Name    string         `json:"name"`
		Require map[string]any `json:"require"`
	}
	if json.NewDecoder(io.LimitReader(f, maxComposer)).Decode(&composer) != nil {
		return nil
	}
	names := map[string]bool{strings.ToLower(composer.Name): true}
	for name := range composer.Require {
		names[strings.ToLower(name)] = true
	}
	return names
}

// Uploads is a folder of files that people brought, for backups.
type Uploads struct {
	Label  string // its name in archives
	Folder string
}

// Uploads lists the folders of an application that is no Botble, those that are there:
// Laravel's disks (Spatie's medialibrary and Filament use them), October's and
// Winter's media, and what Statamic keeps in files instead of tables.
func (s *Site) Uploads() (list []Uploads, err error) {
	folders := map[Application][]Uploads{
		October:  {{"uploads", "storage/app/uploads"}, {"media", "storage/app/media"}},
		Winter:   {{"uploads", "storage/app/uploads"}, {"media", "storage/app/media"}},
		Statamic: {{"uploads", "public/assets"}, {"content", "content"}, {"users", "users"}},
	}
	application := s.Application()
	if !application.Other() {
		return nil, nil
	}
	of, special := folders[application]
	if !special {
		of = []Uploads{{"uploads", "storage/app/public"}, {"private", "storage/app/private"}}
	}
	for _, u := range of {
		u.Folder = filepath.Join(s.Root, filepath.FromSlash(u.Folder))
		info, err := os.Stat(u.Folder)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case info.IsDir():
			list = append(list, u)
		}
	}
	return list, nil
}
