-- The settings and keys that all nodes share.

-- name: newest_settings
-- The settings in force.
SELECT version, text, changed_by, changed_at FROM shared_settings ORDER BY version DESC LIMIT 1;

-- name: settings_versions
-- All versions, by which a node knows that its own file was in force once.
SELECT version, text, changed_by, changed_at FROM shared_settings ORDER BY version DESC;

-- name: add_settings
-- The next version, unless somebody else was first, or it is not the next.
INSERT INTO shared_settings (version, text, changed_by, changed_at)
SELECT :version, :text, :changed_by, :changed_at
WHERE :version = (SELECT COALESCE(MAX(version), 0) + 1 FROM shared_settings)
RETURNING version;

-- name: drop_old_settings
-- The last thousand versions are kept.
DELETE FROM shared_settings WHERE version <= :version - 1000;

-- name: add_shared_key
-- Whoever comes first decides.
INSERT INTO shared_keys (name, key) VALUES (:name, :key) ON CONFLICT (name) DO NOTHING;

-- name: shared_key
-- The key under a name.
SELECT key FROM shared_keys WHERE name = :key_name;
