package restore

import (
	"path"
	"strings"
)

// executableNames are files that change what a web server executes.
var executableNames = map[string]bool{".htaccess": true, ".htpasswd": true, ".user.ini": true, "php.ini": true,
	"web.config": true, ".htgroup": true}

// executableEndings are what web servers hand to an interpreter. Apache looks
// at every ending of a name, so that photo.php.jpg may be one too.
var executableEndings = map[string]bool{
	"php": true, "phtml": true, "phar": true, "phps": true, "pht": true, "phpt": true, "pgif": true, "inc": true,
	"module": true,
	"cgi":    true, "fcgi": true, "pl": true, "py": true, "rb": true, "lua": true, "sh": true, "bash": true,
	"asp": true, "aspx": true, "ashx": true, "asmx": true, "cer": true, "asa": true, "jsp": true, "jspx": true,
	"jspf": true, "cfm": true,
	"shtml": true, "shtm": true, "stm": true, "exe": true, "dll": true, "bat": true, "cmd": true, "so": true,
}

// executable says whether a web server could execute a file of that name in an
// upload folder, or be made by it to execute something.
func executable(name string) bool {
	base := strings.ToLower(path.Base(strings.ReplaceAll(name, "\\", "/")))
	base, _, _ = strings.Cut(base, ":") // NTFS: name.php::$DATA
	base = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, base)
	if executableNames[strings.TrimRight(base, ". ")] {
		return true
	}
	endings := strings.Split(base, ".")
	for _, e := range endings[1:] {
		e = strings.TrimSpace(e)
		if executableEndings[e] || isNumberedPHP(e) {
			return true
		}
	}
	return false
}

// isNumberedPHP knows php3, php5, php74 and the like.
func isNumberedPHP(ending string) bool {
	version, is := strings.CutPrefix(ending, "php")
	return is && version != "" && strings.Trim(version, "0123456789") == ""
}
