package restore

import "testing"

func TestExecutableNames(t *testing.T) {
	for name, want := range map[string]bool{
		"uploads/shell.php": true, "uploads/SHELL.PhP": true, "a.phtml": true, "a.phar": true, "a.php5": true,
		"a.php74": true, ".htaccess": true, "x/.HTACCESS": true,
		".user.ini": true, ".User.INI": true, "web.config": true, "photo.php.jpg": true, "photo.jpg.php": true,
		"a.php ": true, "a.php.": true, "a.php::$DATA": true,
		"a.p\x00hp": true, "a.pht": true, "a.shtml": true, "a.cgi": true, "a.php\n": true, `x\a.php`: true,
		".php":      true,
		"photo.jpg": false, "php": false, "my.phpinfo.txt": false, "a.phpx": false, "report.2026.pdf": false,
		"htaccess.txt": false, "a.b.c.webp": false, "x.php/photo.jpg": false, "": false, ".gitignore": false,
	} {
		if got := executable(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
