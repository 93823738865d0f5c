-- Control tables own ids and unique names; their rows carry a version by which Redis copies are refreshed.
create sequence ids minvalue 100001;
create sequence control_versions;

create table installation (
  name text primary key,
  value text not null
);

create table names (
  name text primary key,
  owner bigint not null
);
comment on table names is 'Lower-cased usernames of people, bots and public chats: one space, each once.';

create table users (
  id bigint primary key default nextval('ids'),
  external_id uuid not null unique default gen_random_uuid(),
  username text,
  first_name text not null,
  last_name text,
  language_code text,
  chats_version bigint not null default nextval('control_versions'),
  version bigint not null default nextval('control_versions'),
  created_at timestamptz not null default now()
);

create table user_tokens (
  id bigint generated always as identity primary key,
  user_id bigint not null references users,
  hmac bytea not null unique,
  name text not null default '',
  created_at timestamptz not null default now()
);
create index on user_tokens (user_id);

create table bots (
  id bigint primary key default nextval('ids'),
  owner_id bigint not null references users,
  username text not null,
  name text not null,
  token_hmac bytea not null unique,
  token_box bytea not null,
  commands jsonb not null default '{}',
  version bigint not null default nextval('control_versions'),
  created_at timestamptz not null default now()
);
create index on bots (owner_id);
comment on column bots.token_box is 'AES-256-GCM with the id of its key: shown to the owner only.';

create table chats (
  id bigint primary key default -nextval('ids'),
  type text not null check (type in ('group', 'channel')),
  title text not null,
  username text,
  private boolean not null default true,
  creator_id bigint not null references users,
  member_count int not null default 1,
  incarnation int not null default 0,
  version bigint not null default nextval('control_versions'),
  created_at timestamptz not null default now()
);
comment on column chats.incarnation is 'Of its partition when it was made: the first message needs to skip nothing.';

create table chat_members (
  chat_id bigint not null references chats,
  member_id bigint not null,
  is_bot boolean not null,
  status text not null check (status in ('creator', 'administrator', 'member', 'left', 'kicked')),
  rights jsonb not null default '{}',
  version bigint not null default nextval('control_versions'),
  primary key (chat_id, member_id)
);
create index on chat_members (member_id) where status in ('creator', 'administrator', 'member');

create table direct_chats (
  bot_id bigint not null references bots,
  user_id bigint not null references users,
  incarnation int not null default 0,
  version bigint not null default nextval('control_versions'),
  created_at timestamptz not null default now(),
  primary key (bot_id, user_id)
);
create index on direct_chats (user_id);

create table control_outbox (
  id bigint generated always as identity primary key,
  subject text not null,
  subject_id bigint not null,
  other_id bigint not null default 0,
  created_at timestamptz not null default now()
);
comment on table control_outbox is 'Redis copies that a committed change has still to refresh.';

create table partitions (
  partition int primary key,
  incarnation int not null default 0,
  run_id text not null default '',
  flushed_version bigint not null default 0,
  flushed_at timestamptz
);

-- Written behind: no foreign keys, no second unique key (architecture, Journal and write-behind).
create table messages (
  chat_id bigint not null,
  user_id bigint not null,
  message_id bigint not null,
  version bigint not null,
  record bytea,
  deleted_at timestamptz,
  primary key (chat_id, user_id, message_id)
) with (fillfactor = 90);
create index on messages (deleted_at) where deleted_at is not null;
comment on column messages.user_id is 'The user of a direct chat, whose chat_id is its bot; 0 for groups and channels.';

create table chat_sequences (
  chat_id bigint not null,
  user_id bigint not null,
  last_message_id bigint not null,
  version bigint not null,
  primary key (chat_id, user_id)
) with (fillfactor = 50);

create table dead_updates (
  bot_id bigint not null,
  update_id bigint not null,
  version bigint not null,
  record bytea,
  deleted_at timestamptz,
  created_at timestamptz not null default now(),
  primary key (bot_id, update_id)
);
create index on dead_updates (deleted_at) where deleted_at is not null;

create table quarantine (
  partition int not null,
  entity text not null,
  version bigint not null,
  image bytea,
  reason text not null,
  created_at timestamptz not null default now(),
  primary key (partition, version)
);
