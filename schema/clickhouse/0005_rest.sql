-- What is current is read with FINAL, which costs half of a look at a whole fleet
-- as long as its rows lie in several parts: a table at rest becomes one.
ALTER TABLE {{.Local "current"}}{{.OnCluster}} MODIFY SETTING min_age_to_force_merge_seconds = 300;
