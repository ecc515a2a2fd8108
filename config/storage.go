package config

// Storage holds the S3 bucket that media and backups may use. Buckets of other
// vendors need the endpoint.
type Storage struct {
	S3 S3 `koanf:"s3"`
}

// S3 is a bucket behind the S3 protocol.
type S3 struct {
	Bucket    string `koanf:"bucket"`
	Region    string `koanf:"region"`
	Endpoint  string `koanf:"endpoint"`
	AccessKey string `koanf:"access_key"`
	SecretKey Secret `koanf:"secret_key"`
	PathStyle bool   `koanf:"path_style"`
	Prefix    string `koanf:"prefix"`
}

func defaultStorage() Storage { return Storage{S3: S3{Region: "us-east-1"}} }

func (s Storage) check(r *report) {
	r.webURL("storage/s3/endpoint", s.S3.Endpoint)
	if s.S3.AccessKey != "" && s.S3.SecretKey == "" {
		r.add("storage/s3/secret_key", "it is missing though access_key is set")
	}
}
