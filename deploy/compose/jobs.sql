-- What the sample CMS of docker-compose.yml wants done, as its PHP says it: plain rows.
INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES
('default', '{"type":"sitemap.generate","force":true}', 0, UNIX_TIMESTAMP(), UNIX_TIMESTAMP()),
('default', '{"type":"media.processImage","mediaFileId":1,"filePath":"photos/harbour-1.jpg","mimeType":"image/jpeg"}', 0, UNIX_TIMESTAMP(), UNIX_TIMESTAMP()),
('default', '{"type":"mail.send","to":"zoe@example.com","subject":"Hello","body":"<p>Sent by a job.</p>"}', 0, UNIX_TIMESTAMP(), UNIX_TIMESTAMP()),
('default', '{"type":"cache.clear","tags":["menu"]}', 0, UNIX_TIMESTAMP(), UNIX_TIMESTAMP()),
('default', '{"type":"content.publish","model":"posts","postId":1}', 0, UNIX_TIMESTAMP(), UNIX_TIMESTAMP()),
('default', '{"type":"notification.send","title":"Hello","message":"The stack is up."}', 0, UNIX_TIMESTAMP(), UNIX_TIMESTAMP()),
('default', '{"type":"backup.generate"}', 0, UNIX_TIMESTAMP(), UNIX_TIMESTAMP());
