-- serves 0051
-- Chats of two people (decision 0083): who opened the chat with whom, who blocked whom, and who may start a chat.
alter table users add column start_chats text not null default 'everyone'
  check (start_chats in ('everyone', 'shared_chats', 'nobody'));

alter table chats drop constraint chats_type_check;
alter table chats add constraint chats_type_check check (type in ('group', 'channel', 'person'));

create table person_chats (
  chat_id bigint primary key references chats,
  opener_id bigint not null references users,
  peer_id bigint not null references users,
  is_stranger boolean not null,
  created_at timestamptz not null default now(),
  check (opener_id <> peer_id)
);
create unique index person_chats_pair on person_chats (least(opener_id, peer_id), greatest(opener_id, peer_id));
create index on person_chats (opener_id, created_at);
create index on person_chats (peer_id, created_at);
comment on column person_chats.is_stranger is 'Whether the two people shared no chat when the chat was opened. Counts against daily limits.';

create table person_blocks (
  id bigint generated always as identity,
  user_id bigint not null references users,
  blocked_id bigint not null references users,
  created_at timestamptz not null default now(),
  primary key (user_id, blocked_id)
);
create index on person_blocks (blocked_id);
