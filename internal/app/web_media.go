package app

import (
	"context"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/answers"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	mediapage "github.com/cmsjobs/cmsjobs/internal/web/feature/media"
)

// webMedia looks at thumbnails. Looking reads every row and every name, so an
// answer serves for a while.
type webMedia struct {
	r     *Services
	cache *answers.Cache
}

const examplesShown = 20

func (m webMedia) MediaStatus(ctx context.Context) (mediapage.MediaStatus, error) {
	return answers.Fresh(ctx, m.cache, "media", serves, func(ctx context.Context) (mediapage.MediaStatus, error) {
		report, err := m.r.Handlers.Media.Check(ctx, media.CheckOptions{}, func(int64, int64) {})
		return mediapage.MediaStatus{Pictures: report.Pictures, Missing: int64(len(report.Missing)),
			Lost:     int64(len(report.Lost)),
			Examples: report.Missing[:min(len(report.Missing), examplesShown)]}, err
	})
}

// Regenerate enqueues a job for each picture.
func (m webMedia) Regenerate(ctx context.Context, onlyMissing bool) (int, error) {
	var f cms.MediaFilter
	n := 0
	for {
		files, err := m.r.Site.MediaFiles(ctx, f, 500)
		if err != nil || len(files) == 0 {
			return n, err
		}
		var list []jobs.Spec
		for _, file := range files {
			f.After = file.ID
			if strings.HasPrefix(file.MIME, "image/") {
				list = append(list, media.ProcessImage.New(media.ProcessImagePayload{MediaFileID: media.ID(file.ID),
					FilePath: file.URL, MimeType: file.MIME, Force: !onlyMissing}))
			}
		}
		if len(list) == 0 {
			continue
		}
		if _, err := m.r.Enqueue(ctx, list...); err != nil {
			return n, err
		}
		n += len(list)
	}
}
