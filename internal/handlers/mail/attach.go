package mail

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/folder"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/template"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// file is an attachment's content, read and bounded.
type file struct {
	name, contentType, contentID string
	content                      []byte
}

// attachments reads all of them. What is missing, too large or outside the
// allowed folders is permanent; trouble of reading is not.
func (h *Handler) attachments(ctx context.Context, list []Attachment) ([]file, error) {
	files := make([]file, 0, len(list))
	left := h.c.MaxAttachmentBytes
	for _, a := range list {
		content, err := h.read(ctx, a, left)
		if err != nil {
			return nil, fmt.Errorf("attaching %q: %w", fileName(a), err)
		}
		left -= int64(len(content))
		files = append(files, file{fileName(a), contentType(a), a.ContentID, content})
	}
	return files, nil
}

func (h *Handler) read(ctx context.Context, a Attachment, limit int64) ([]byte, error) {
	switch {
	case a.Content != "":
		content, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(a.Content), ""))
		if err != nil {
			return nil, jobs.Permanent(fmt.Errorf("its content is not base64: %w", err))
		}
		return folder.ReadAll(bytes.NewReader(content), limit)
	case a.Key != "":
		if h.c.Store == nil {
			return nil, jobs.Permanent(errors.New("no store for attachments is configured"))
		}
		r, _, err := h.c.Store.Open(ctx, a.Key)
		if errors.Is(err, storage.ErrNotFound) {
			return nil, jobs.Permanent(err)
		}
		if err != nil {
			return nil, err
		}
		defer func() { _ = r.Close() }()
		return folder.ReadAll(r, limit)
	}
	return h.readFile(a.Path, limit)
}

// refuse says before the run what it would refuse for good: a mail for nobody,
// files outside of the allowed folders, and several recipients in one text.
func (h *Handler) refuse(data json.RawMessage, p SendPayload) error {
	if len(p.To)+len(p.CC)+len(p.BCC) == 0 && !h.ToAdministrators(p.Template) {
		return phrase.Errorf(`the mail has no recipient: give "to" an address, or %q for the CMS's admin_email`,
			template.Administrators)
	}
	for _, a := range p.Attachments {
		if a.Path != "" && !slices.ContainsFunc(h.c.AttachmentRoots, func(folder string) bool {
			_, in := under(folder, a.Path)
			return in
		}) {
			return phrase.Errorf("the attachment %.80q is not under the allowed folders (mail.roots)", a.Path)
		}
		if a.Key != "" && h.c.Store == nil {
			return phrase.Errorf("no store for attachments is configured")
		}
	}
	if h.c.OneRecipient {
		return oneRecipient(data)
	}
	return nil
}

// under is a path as seen from a folder, which it may not leave.
func under(folder, name string) (inside string, ok bool) {
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(folder, filepath.Clean(name))
		if err != nil {
			return "", false
		}
		name = rel
	}
	return name, filepath.IsLocal(name)
}

// readFile opens a path under one of the allowed folders. os.Root keeps it
// there, also through symlinks.
func (h *Handler) readFile(name string, limit int64) ([]byte, error) {
	for _, root := range h.c.AttachmentRoots {
		inside, ok := under(root, name)
		if !ok {
			continue
		}
		content, err := folder.Read(root, inside, limit)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		return content, err
	}
	return nil, jobs.Permanent(fmt.Errorf("no such file under the allowed folders %v (mail.roots)",
		h.c.AttachmentRoots))
}

// fileName is what the recipient sees: the last part of the path, without
// characters that hide or change an extension.
func fileName(a Attachment) string {
	name := a.Name
	if name == "" {
		name = a.Path + a.Key
	}
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '"' || r == '\u2028' || r == '\u2029' ||
			r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, name)
	if name == "" || name == "." || name == "/" {
		return "attachment"
	}
	return name
}

func contentType(a Attachment) string {
	if kind, _, err := mime.ParseMediaType(a.ContentType); err == nil && strings.Count(kind, "/") == 1 {
		return kind
	}
	if kind, _, err := mime.ParseMediaType(mime.TypeByExtension(path.Ext(fileName(a)))); err == nil {
		return kind
	}
	return "application/octet-stream"
}
