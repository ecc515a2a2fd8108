package config

// Storage holds the S3 bucket that media and backups may use, and the other hosts that
// backups may go to. Buckets of other vendors need the endpoint.
type Storage struct {
	S3   S3   `koanf:"s3"`
	SFTP SFTP `koanf:"sftp"`
}

// SFTP is a folder of another host.
type SFTP struct {
	Host     string `koanf:"host"`
	Port     int    `koanf:"port"`
	User     string `koanf:"user"`
	Password Secret `koanf:"password"`
	KeyFile  string `koanf:"key_file"`
	HostKey  string `koanf:"host_key"` // a fingerprint, or the path of a known_hosts file
	Dir      string `koanf:"dir"`
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

func defaultStorage() Storage { return Storage{S3: S3{Region: "us-east-1"}, SFTP: SFTP{Port: 22}} }

func (s Storage) check(r *report) {
	r.webURL("storage/s3/endpoint", s.S3.Endpoint)
	if s.S3.AccessKey != "" && s.S3.SecretKey == "" {
		r.add("storage/s3/secret_key", "it is missing though access_key is set")
	}
	r.between("storage/sftp/port", s.SFTP.Port, 1, 65535)
	if s.SFTP.Host != "" && (s.SFTP.User == "" || s.SFTP.Password == "" && s.SFTP.KeyFile == "") {
		r.add("storage/sftp/host", "user, and password or key_file, are needed besides")
	}
}
