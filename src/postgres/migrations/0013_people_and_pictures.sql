-- What people do for themselves: tokens by name, and pictures of their bots.
alter table user_tokens add column last_used_on date;
create unique index user_tokens_by_name on user_tokens (user_id, name) where name <> '';
comment on column user_tokens.last_used_on is 'By UTC; noted when a node looks the token up, which it does at most once a minute.';

alter table bots add column pictures jsonb not null default '{}';
comment on column bots.pictures is 'Kind -> the stored files in their sizes, the largest first. Versioned and copied with the descriptions.';

create table unused_files (
  key text primary key,
  since timestamptz not null default now()
);
create index on unused_files (since);
comment on table unused_files is 'Keys of stored files that nothing refers to: about to be written, or replaced. Removed after an hour.';
