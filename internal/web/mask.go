package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// masked stands where a secret was.
const masked = redact.Mask

// viewer is the view that the caller may have: who may not operate sees no
// texts of mails, no deliveries, no addresses of the network inside.
func (s *Server) viewer(c echo.Context) ops.Viewer {
	if who(c).Scopes.Has(access.Operate) {
		return s.viewerFor(redact.Operators)
	}
	return s.viewerFor(redact.Readers)
}

// public is the view of what goes to listeners of any right.
func (s *Server) public() ops.Viewer { return s.viewerFor(redact.Readers) }

func (s *Server) viewerFor(to redact.Audience) ops.Viewer {
	return ops.Viewer{Mask: s.mask, To: to, Registry: s.cfg.Registry}
}

// known says whether a name is a type here.
func (s *Server) known(name string) bool {
	_, ok := s.cfg.Registry.Known(name)
	return ok
}

// settings are the configuration's values, secrets masked whatever came.
func (s *Server) settings() []Setting {
	if s.cfg.Settings == nil {
		return nil
	}
	return ops.Each(s.cfg.Settings(), func(x Setting) Setting {
		if (x.Secret || redact.SecretKey(x.Name[strings.LastIndexByte(x.Name, '.')+1:])) && x.Value != "" {
			x.Secret, x.Value = true, masked
		}
		x.Value = redact.Text(x.Value)
		return x
	})
}

// Unmask puts the secrets of the original back where an edited payload still
// shows the mask. Beside a mask nothing may be changed, or a secret could be
// sent elsewhere; administrators may, who see all secrets by other ways.
func (r *Request) Unmask(jobType string, edited, original []byte) (json.RawMessage, error) {
	var next, was, shown any
	if err := decodeNumbers(edited, &next); err != nil {
		return nil, fieldError(http.StatusUnprocessableEntity, "payload", "The payload is not JSON: %v.", err)
	}
	if !hasMask(next) {
		return json.Marshal(next)
	}
	view := r.View().Payload(jobType, original)
	plain, err := r.server.cfg.Registry.Decrypted(jobType, original)
	if err != nil {
		return nil, fieldError(http.StatusConflict, "payload", "The payload cannot be read: %s", Spoken{err})
	}
	if decodeNumbers(plain, &was) != nil || decodeNumbers(view, &shown) != nil {
		was, shown = nil, nil
	}
	if SameJSON(edited, view) {
		return json.Marshal(was)
	}
	if !r.Caller().Scopes.Has(access.Admin) {
		return nil, fieldError(http.StatusUnprocessableEntity, "payload", "%s stands for a secret. Write the secret "+
			"there, or change nothing else: only administrators may change other fields beside it.", masked)
	}
	restored, ok := restore(next, was, shown)
	if !ok {
		return nil, fieldError(http.StatusUnprocessableEntity, "payload", "%s stands where the original has no "+
			"value. Write the value there.", masked)
	}
	return json.Marshal(restored)
}

// hasMask says whether the mask stands anywhere in a value.
func hasMask(value any) bool {
	switch v := value.(type) {
	case string:
		return strings.Contains(v, masked)
	case map[string]any:
		for key, inner := range v {
			if strings.Contains(key, masked) || hasMask(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasMask)
	}
	return false
}

func decodeNumbers(raw []byte, into *any) error {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("something follows the first value")
	}
	return nil
}

// restore puts values back that are as they were shown, masked.
func restore(next, was, shown any) (any, bool) {
	ok := true
	switch v := next.(type) {
	case string:
		if strings.Contains(v, masked) {
			return was, was != nil && shown == next
		}
	case map[string]any:
		old, _ := was.(map[string]any)
		seen, _ := shown.(map[string]any)
		for key, inner := range v {
			var fine bool
			v[key], fine = restore(inner, old[key], seen[key])
			ok = ok && fine
		}
	case []any:
		old, _ := was.([]any)
		seen, _ := shown.([]any)
		for i, inner := range v {
			var before, view any
			if i < len(old) && i < len(seen) {
				before, view = old[i], seen[i]
			}
			var fine bool
			v[i], fine = restore(inner, before, view)
			ok = ok && fine
		}
	}
	return next, ok
}

// SameJSON says whether two texts are the same JSON.
func SameJSON(a, b json.RawMessage) bool {
	var x, y any
	if decodeNumbers(a, &x) != nil || decodeNumbers(b, &y) != nil {
		return false
	}
	left, err := json.Marshal(x)
	right, err2 := json.Marshal(y)
	return errors.Join(err, err2) == nil && string(left) == string(right)
}
