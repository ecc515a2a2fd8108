package mail

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/address"
)

// filesDriver writes each message into a folder: for staging, where nothing
// may be sent. The names sort by time.
type filesDriver struct {
	folder string
	now    func() time.Time
}

func (d filesDriver) deliver(_ context.Context, e envelope, msg message, handOver func([]address.Address) error) (
	[]outcome, error) {
	if err := handOver(e.recipients); err != nil {
		return all(e.recipients, Deferred, 0, err.Error()), err
	}
	name := fmt.Sprintf("%s-%s.eml", d.now().UTC().Format("20060102T150405.000"), rand.Text()[:8])
	if err := d.write(name, e, msg); err != nil {
		return all(e.recipients, Deferred, 0, err.Error()), fmt.Errorf("writing the mail to %s: %w", d.folder, err)
	}
	return all(e.recipients, Accepted, 0, "captured as "+name), nil
}

// write makes the file whole or not at all. The envelope stands in the first
// two lines, as Bcc is nowhere else.
func (d filesDriver) write(name string, e envelope, msg message) error {
	if d.folder == "" {
		return errors.New("no folder is set for the driver files (mail.dir)")
	}
	if err := os.MkdirAll(d.folder, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(d.folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	part := "." + name + ".part"
	f, err := root.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "X-Envelope-From: <%s>\r\nX-Envelope-To: %s\r\n", e.from, mailboxes(e.recipients, ",\r\n "))
	if err == nil {
		_, err = msg.WriteTo(f)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = root.Rename(part, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(part))
	}
	return nil
}

func mailboxes(list []address.Address, separator string) string {
	names := make([]string, len(list))
	for i, a := range list {
		names[i] = "<" + a.Mailbox + ">"
	}
	return strings.Join(names, separator)
}

// logDriver writes a line and sends nothing. Bodies hold secrets (reset
// links): they are not logged.
type logDriver struct{ log *slog.Logger }

func (d logDriver) deliver(ctx context.Context, e envelope, msg message, handOver func([]address.Address) error) (
	[]outcome, error) {
	if err := handOver(e.recipients); err != nil {
		return all(e.recipients, Deferred, 0, err.Error()), err
	}
	size, err := msg.WriteTo(io.Discard)
	if err != nil {
		return all(e.recipients, Deferred, 0, err.Error()), err
	}
	d.log.InfoContext(ctx, "mail logged, not sent", "event", "mail.logged",
		"from", e.from, "to", mailboxes(e.recipients, ", "), "bytes", size)
	return all(e.recipients, Accepted, 0, "written to the log"), nil
}

// sendmailDriver pipes the message into the local sendmail program. The
// recipients are arguments after "--", so no address can be an option, and
// header lines name nobody.
type sendmailDriver struct{ path string }

// exTempfail is sysexits.h's EX_TEMPFAIL.
const exTempfail = 75

func (d sendmailDriver) deliver(ctx context.Context, e envelope, msg message, handOver func([]address.Address) error) (
	[]outcome, error) {
	var text bytes.Buffer // composed first: a mail cut in the middle would be sent
	if _, err := msg.WriteTo(&text); err != nil {
		return all(e.recipients, Deferred, 0, err.Error()), err
	}
	if _, err := exec.LookPath(d.path); err != nil {
		err = fmt.Errorf("the program %s is not there: install it, or choose smtp in the CMS's e-mail settings: %w",
			d.path, err)
		return all(e.recipients, Deferred, 0, err.Error()), err
	}
	if err := handOver(e.recipients); err != nil {
		return all(e.recipients, Deferred, 0, err.Error()), err
	}
	args := []string{"-i", "-f", e.from, "--"}
	for _, r := range e.recipients {
		args = append(args, r.Mailbox)
	}
	cmd := exec.CommandContext(ctx, d.path, args...)
	cmd.Stdin = bytes.NewReader(bytes.ReplaceAll(text.Bytes(), []byte("\r\n"), []byte("\n")))
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	cmd.WaitDelay = 5 * time.Second
	said, err := cmd.CombinedOutput()
	return sendmailOutcomes(ctx, e.recipients, string(said), err)
}

func sendmailOutcomes(ctx context.Context, to []address.Address, said string, err error) ([]outcome, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return all(to, Accepted, 0, "sendmail took it"), nil
	case ctx.Err() != nil || !errors.As(err, &exit) || exit.ExitCode() < 0:
		err = fmt.Errorf("sendmail ended without an answer: %w", err)
		return all(to, Unknown, 0, err.Error()), err
	case exit.ExitCode() == exTempfail:
		return all(to, Deferred, exTempfail, cut(said, maxAnswer)), nil
	}
	return all(to, Refused, exit.ExitCode(), cut(said, maxAnswer)), nil
}
