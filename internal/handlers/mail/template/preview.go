package template

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/cms"
)

// Example is data to try a template with, from NAME.example.json.
func (t *Set) Example(name string) (map[string]any, error) {
	if !templateName.MatchString(name) {
		return nil, fmt.Errorf("%.60q is not the name of a mail template", name)
	}
	for _, files := range t.layers() {
		text, err := readBounded(files, name+".example.json")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		data := map[string]any{}
		if err := json.Unmarshal([]byte(text), &data); err != nil {
			return nil, fmt.Errorf("the example of the mail template %s: %w", name, err)
		}
		return data, nil
	}
	return map[string]any{}, nil
}

// Where a template comes from.
const (
	FromUs     = "own"    // shipped with the program
	FromFolder = "folder" // the operator's
	FromCMS    = "cms"
)

// Info is one template that a payload may name.
type Info struct {
	Name   string `json:"name"`
	Origin string `json:"origin"`
	// Locales that have a separate text, in order.
	Locales []string `json:"locales"`
}

// List names the templates of both layers. One of which the operator has any
// file is the operator's.
func (t *Set) List() []Info {
	var list []Info
	for _, name := range t.Names() {
		info := Info{Name: name, Origin: FromUs}
		for i, files := range t.layers() {
			mine := t.Folder != "" && i == 0
			found, _ := fs.Glob(files, name+".*tmpl") // the name is checked: the pattern is right
			if mine && len(found) > 0 {
				info.Origin = FromFolder
			}
			for _, file := range found {
				locale, _, _ := strings.Cut(strings.TrimPrefix(file, name+"."), ".")
				if localeName.MatchString(locale) && locale != "txt" {
					info.Locales = append(info.Locales, locale)
				}
			}
		}
		slices.Sort(info.Locales)
		info.Locales = slices.Compact(info.Locales)
		list = append(list, info)
	}
	return list
}

// cmsModules is where the CMS's modules keep their templates. (The
// administrator's copies are of these only.)
const cmsModules = "platform/*/*/resources/email-templates/*.tpl"

// maxCMSTemplates bounds the list.
const maxCMSTemplates = 1000

// cmsTemplates lists the CMS's own, as a payload names them.
func (l *Library) cmsTemplates() ([]Info, error) {
	if l.site.Root == "" {
		return nil, nil
	}
	files, err := fs.Glob(os.DirFS(l.site.Root), cmsModules) // "platform" may be a link
	if err != nil {
		return nil, fmt.Errorf("looking for the CMS's mail templates: %w", err)
	}
	var list []Info
	for _, file := range files[:min(len(files), maxCMSTemplates)] {
		part := strings.Split(file, "/") // platform, type, module, resources, email-templates, name.tpl
		name := "cms:" + path.Join(part[1], part[2], strings.TrimSuffix(part[5], ".tpl"))
		if cmsName.MatchString(name) {
			list = append(list, Info{Name: name, Origin: FromCMS})
		}
	}
	return list, nil
}

// TemplateList is what a payload's template may name: ours and the operator's,
// then the CMS's own.
func (l *Library) TemplateList() ([]Info, error) {
	theirs, err := l.cmsTemplates()
	return append(l.templates.List(), theirs...), err
}

// Sample is data to try a template with: its example, or, for one of the CMS's
// own, the name of each variable in brackets.
func (l *Library) Sample(name string) (map[string]any, error) {
	if !isCMSTemplate(name) {
		if !slices.Contains(l.templates.Names(), name) {
			return nil, fmt.Errorf("%.60q: %w", name, ErrNoTemplate)
		}
		return l.templates.Example(name)
	}
	text, err := l.cmsText(name)
	if err != nil {
		return nil, err
	}
	data := map[string]any{}
	known := Branding{}.variables()
	for _, inside := range variablesIn(text) {
		if _, site := known[inside]; !site && !strings.Contains(inside, ".") {
			data[inside] = "[" + inside + "]"
		}
	}
	return data, nil
}

// Preview renders a template as it would be sent now, with data or, where it
// is nil, with its sample.
func (l *Library) Preview(ctx context.Context, name, locale string, data map[string]any) (Content, error) {
	settings, err := l.site.Settings(ctx)
	if err != nil {
		return Content{}, err
	}
	if data == nil {
		if data, err = l.Sample(name); err != nil {
			return Content{}, err
		}
	}
	return l.Fill(ctx, name, locale, data, settings)
}

// Fill renders a template of either type.
func (l *Library) Fill(ctx context.Context, name, locale string, data map[string]any, settings cms.Settings) (Content,
	error) {
	look := l.Branding(settings)
	if isCMSTemplate(name) {
		return l.cmsTemplate(name, data, settings, look)
	}
	return l.templates.Render(ctx, name, locale, data, look)
}
