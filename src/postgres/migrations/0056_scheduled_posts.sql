-- serves 0049
-- Posts that people have scheduled in channels (decision 0087). A published post has no row.
create table scheduled_posts (
  id bigint generated always as identity primary key,
  chat_id bigint not null references chats,
  user_id bigint not null references users,
  content bytea not null,
  publish_at timestamptz not null,
  next_at timestamptz not null,
  seed uuid not null default gen_random_uuid(),
  tried_at timestamptz,
  failure text
);
comment on column scheduled_posts.next_at is 'When the post is published, or tried again after a process has died.';
comment on column scheduled_posts.seed is 'Each attempt derives the same request id from it.';
comment on column scheduled_posts.tried_at is 'When the first attempt began. Null while there is none, and after a failure.';
comment on column scheduled_posts.failure is 'Name of the error with which the publication was refused.';
create index on scheduled_posts (user_id);
create index on scheduled_posts (chat_id, user_id);
create index on scheduled_posts (next_at);
