package templates

import (
	"embed"
	"io/fs"
)

//go:embed all:mail
var mail embed.FS

//go:embed all:admin
var admin embed.FS

//go:embed all:report
var report embed.FS

// Mail holds the mails: NAME.html.tmpl and NAME.txt.tmpl, layout.*.tmpl around them.
func Mail() fs.FS { return sub(mail, "mail") }

// Admin holds the admin pages and what they load.
func Admin() fs.FS { return sub(admin, "admin") }

// Report holds the reports.
func Report() fs.FS { return sub(report, "report") }

// sub cannot fail: the folder is a literal that the compiler embedded.
func sub(files embed.FS, folder string) fs.FS {
	inside, err := fs.Sub(files, folder)
	if err != nil {
		panic(err)
	}
	return inside
}
