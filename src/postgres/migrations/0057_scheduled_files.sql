-- serves 0049
-- Files of scheduled posts (decision 0087).
alter table scheduled_posts add column files text[] not null default '{}';
comment on column scheduled_posts.files is 'Keys of the uploaded files that are removed with the post, unless it was published.';
-- Finds the posts with a file, so that the removal of old files keeps it.
create index on scheduled_posts using gin (files);
