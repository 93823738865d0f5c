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

create table user_identities (
  id bigint generated always as identity primary key,
  issuer text not null,
  subject text not null,
  user_id bigint references users,
  version bigint not null default nextval('control_versions'),
  unique (issuer, subject)
);
create unique index user_identities_of_user on user_identities (issuer, user_id) where user_id is not null;
comment on table user_identities is 'What an identity provider calls people. A row without a person tells copies in Redis that it has none any more.';
