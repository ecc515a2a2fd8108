package cms

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// MediaPlace is where the CMS keeps uploads: a folder, or a bucket. It can be
// compared with ==.
type MediaPlace struct {
	// Folder is an absolute path; "" when the files lie in a bucket.
	Folder string
	Bucket MediaBucket
	// KeyPrefix goes before a row's URL to make its key ("" or "root/").
	KeyPrefix string
	// Site is the site's address: a row may have the whole address of its file.
	Site string
}

// Key is the key of a path under the upload place, as Names gives it.
func (p MediaPlace) Key(url string) string { return p.KeyPrefix + strings.TrimLeft(url, "/") }

// MediaBucket are the settings of an S3-compatible driver.
type MediaBucket struct {
	Driver    string // s3, r2, do_spaces, wasabi, backblaze
	AccessKey string
	Secret    string
	Region    string
	Name      string
	Endpoint  string // "" is Amazon's own
	PathStyle bool
	// Foreign says that only the settings in the database name the endpoint: who
	// may write those need not be trusted with what this machine can reach.
	Foreign bool
}

// String leaves out the secret, so that a place can be logged.
func (b MediaBucket) String() string { return b.Driver + ":" + b.Name }

// GoString keeps %#v from showing the secret.
func (b MediaBucket) GoString() string { return "cms.MediaBucket(" + b.String() + ")" }

// bucketKeys are the middle of the settings' names (media_<middle>_bucket).
var bucketKeys = map[string]string{"s3": "aws", "r2": "r2", "do_spaces": "do_spaces", "wasabi": "wasabi",
	"backblaze": "backblaze"}

// MediaPlace finds where uploads lie, as core/media's RvMedia::getUploadPath
// and its drivers do. It needs Root for local files.
func (s *Site) MediaPlace(settings Settings) (MediaPlace, error) {
	switch driver := settings.String("media_driver", "public"); driver {
	case "public", "local":
		folder, err := s.uploadFolder(settings)
		return MediaPlace{Folder: folder, Site: s.URL()}, err
	case "bunnycdn":
		return MediaPlace{}, errors.New("the CMS keeps its media at BunnyCDN, whose own protocol is not spoken here; " +
			"use its S3-compatible driver")
	default:
		middle, known := bucketKeys[driver]
		if !known {
			return MediaPlace{}, fmt.Errorf("the CMS's setting media_driver is %q, which is not known", driver)
		}
		return s.bucket(driver, "media_"+middle+"_", settings)
	}
}

func (s *Site) bucket(driver, prefix string, settings Settings) (MediaPlace, error) {
	// The keys of the .env are for the endpoint of the .env.
	named := settings.String(prefix+"endpoint", "")
	away := named != "" && named != s.Env.String("AWS_ENDPOINT", "")
	get := func(setting, env string) string {
		fallback := ""
		if driver == "s3" && env != "" && (!away || !strings.Contains(env, "KEY")) {
			fallback = s.Env.String(env, "")
		}
		return settings.String(prefix+setting, fallback)
	}
	b := MediaBucket{
		Driver: driver, AccessKey: get("access_key_id", "AWS_ACCESS_KEY_ID"),
		Secret: get("secret_key", "AWS_SECRET_ACCESS_KEY"),
		Region: get("default_region", "AWS_DEFAULT_REGION"), Name: get("bucket", "AWS_BUCKET"),
		Endpoint: get("endpoint", "AWS_ENDPOINT"),
		PathStyle: settings.Bool(prefix+"use_path_style_endpoint", driver == "r2" || driver == "s3" &&
			s.Env["AWS_USE_PATH_STYLE_ENDPOINT"] == "true"),
	}
	b.Foreign = away || driver != "s3"
	place := MediaPlace{Bucket: b, Site: s.URL()}
	switch driver {
	case "r2":
		place.Bucket.Region = "auto"
	case "wasabi":
		place.Bucket.Endpoint = "https://s3." + b.Region + ".wasabisys.com"
		if root := strings.Trim(get("root", ""), "/"); root != "" {
			place.KeyPrefix = root + "/"
		}
	}
	if b.Name == "" {
		return MediaPlace{}, fmt.Errorf("the CMS's media driver is %s, but its setting %sbucket is empty", driver,
			prefix)
	}
	return place, nil
}

// uploadFolder tries the five places in the CMS's order.
func (s *Site) uploadFolder(settings Settings) (string, error) {
	if s.Root == "" {
		return "", errors.New("the CMS's folder is not configured, so its uploads cannot be found")
	}
	custom := ""
	if settings.Bool("media_customize_upload_path", false) {
		custom = settings.String("media_upload_path", "")
	}
	if custom == "" {
		custom = s.Env.String("RV_MEDIA_DEFAULT_UPLOAD_FOLDER", "")
	}
	if custom != "" {
		clean := path.Clean(strings.Trim(custom, "/"))
		if !filepath.IsLocal(clean) {
			return "", fmt.Errorf("the CMS's upload path %q leads out of its public folder", custom)
		}
		return filepath.Join(s.Public(), filepath.FromSlash(clean)), nil
	}
	linked := filepath.Join(s.Storage(), "app", "public")
	if strings.EqualFold(s.Env["RV_MEDIA_USE_STORAGE_SYMLINK"], "true") {
		return linked, nil
	}
	usual := filepath.Join(s.Public(), "storage")
	if info, err := os.Lstat(usual); err == nil && info.Mode()&os.ModeSymlink != 0 {
		return linked, nil
	}
	return usual, nil
}
