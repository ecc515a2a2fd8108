package backup

import "strings"

// SecretTables are dumped without rows unless Options.WithSecrets: what they
// hold gives access or names visitors, nobody misses it after a restore, and a
// backup lies at places that the database does not. Names without the CMS's
// prefix. After a restore people sign in again, reset links are asked for again,
// and webhooks are entered again with new secrets.
//
// API tokens and passwords of accounts stay: only their hashes are stored.
var SecretTables = []string{
	"password_resets", "password_reset_tokens", // the CMS's reset links
	"cmsjobs_analytics_salts", // with them, hashes lead back to visitors
	"cmsjobs_sessions",        // of the admin pages
	"cmsjobs_logins",          // addresses of wrong sign-ins
	"cmsjobs_idempotency",     // answers of the API
	"cmsjobs_mail_payloads",   // letters that wait, reset links among them
	"cmsjobs_webhooks",        // secrets in clear, as they sign with them
}

// ledgerPrefix begins the names of the service's tables. They are dumped without
// rows whatever the options say: the signing key is among them. A restore into
// the site's own database leaves them alone: what was backed up and verified stays
// known.
const ledgerPrefix = "cmsjobs_backup"

// emptied says whether a table is dumped without rows.
func (h *Handler) emptied(table string) bool {
	return strings.HasPrefix(table, ledgerPrefix) || h.tablesIn(h.c.Options.EmptyTables)(table) ||
		!h.c.Options.WithSecrets && h.tablesIn(SecretTables)(table)
}
