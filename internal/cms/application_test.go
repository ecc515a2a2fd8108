package cms

import (
	"path/filepath"
	"strings"
	"testing"
)

// Applications are known by what real ones have in their folders.
func TestApplicationsAreToldApart(t *testing.T) {
	for want, c := range map[Application]struct {
		files   map[string]string
		public  string
		uploads string
	}{
		Unknown: {map[string]string{".env": "", "public/x": ""}, "public", ""},
		Botble: {map[string]string{"composer.json": `{"require":{"laravel/framework":"^13"}}`,
			"platform/core/core.json": "{}",
			"public/index.php":        ""}, "public", ""},
		Laravel: {map[string]string{"composer.json": `{"name":"acme/app","require":{"laravel/framework":"^12",
			"spatie/laravel-medialibrary":"^11"}}`, "public/index.php": "", "storage/app/public/1/a.jpg": "",
			"storage/app/private/b": ""}, "public", "uploads=storage/app/public private=storage/app/private"},
		October: {map[string]string{"composer.json": `{"name":"october/october","require":{"october/rain":"^3",
			"laravel/framework":"^9"}}`, "index.php": "", "storage/app/uploads/public/a": "",
			"storage/app/media/b": ""}, "",
			"uploads=storage/app/uploads media=storage/app/media"},
		Winter: {map[string]string{"composer.json": `{"require":{"winter/storm":"^1.2","laravel/framework":"^9"}}`,
			"index.php": "", "storage/app/media/b": ""}, "", "media=storage/app/media"},
		Statamic: {map[string]string{"composer.json": `{"require":{"statamic/cms":"^5","laravel/framework":"^11"}}`,
			"public/assets/a": "", "content/collections/blog/1.md": "", "users/me.yaml": ""}, "public",
			"uploads=public/assets content=content users=users"},
		Filament: {
			map[string]string{"composer.json": `{"require":{"laravel/framework":"^12","filament/filament":"^4"}}`,
				"public/index.php": "", "storage/app/public/a": ""}, "public", "uploads=storage/app/public"},
		Bagisto: {map[string]string{"composer.json": `{"name":"bagisto/bagisto","require":{"laravel/framework":"^11"}}`,
			"packages/Webkul/Core/x": "", "public/index.php": "", "storage/app/public/a": ""}, "public",
			"uploads=storage/app/public"},
	} {
		root := folder(t, c.files)
		s := &Site{Root: root}
		if got := s.Application(); got != want {
			t.Errorf("%q was taken for %q", want, got)
		}
		if public := filepath.Join(root, c.public); s.Public() != public {
			t.Errorf("%s: public is %s, want %s", want, s.Public(), public)
		}
		list, err := s.Uploads()
		var found []string
		for _, u := range list {
			name, _ := filepath.Rel(root, u.Folder)
			found = append(found, u.Label+"="+filepath.ToSlash(name))
		}
		if got := strings.Join(found, " "); err != nil || got != c.uploads {
			t.Errorf("%s: uploads are %q, want %q, %v", want, got, c.uploads, err)
		}
	}
}
