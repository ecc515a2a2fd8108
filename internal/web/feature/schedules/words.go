package schedules

import "github.com/cmsjobs/cmsjobs/internal/web/locale"

// Words reads a cron line to a person.
func Words(lang locale.Printer, cron string) string { return cronWords(lang, cron) }
