-- What a direct chat's user decided about its bot.
alter table direct_chats add column blocked boolean not null default false;

-- Written behind, as messages are.
create table chat_pins (
  chat_id bigint not null,
  user_id bigint not null,
  version bigint not null,
  record bytea,
  deleted_at timestamptz,
  primary key (chat_id, user_id)
);
create index on chat_pins (deleted_at) where deleted_at is not null;
comment on table chat_pins is 'The one pinned message of a chat; no row, or a tombstone, where none is pinned.';

create table posts (
  partition bigint not null,
  number bigint not null,
  version bigint not null,
  record bytea,
  deleted_at timestamptz,
  primary key (partition, number)
);
create index on posts (deleted_at) where deleted_at is not null;
comment on table posts is 'Where a post stands: channel and message. Its id is number * 1000 + partition.';

create table post_sequences (
  partition bigint not null,
  last_number bigint not null,
  version bigint not null,
  primary key (partition)
);
