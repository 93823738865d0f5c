-- A chat of very many members is read by its few bots and administrators.
create index on chat_members (chat_id, member_id) where is_bot;
create index on chat_members (chat_id, member_id) where status in ('creator', 'administrator');

create table member_events (
  id bigint generated always as identity primary key,
  chat_id bigint not null,
  user_id bigint not null default 0,
  member_id bigint not null,
  is_bot boolean not null,
  by_id bigint not null,
  was jsonb not null,
  became jsonb not null,
  created_at timestamptz not null default now()
);
create index on member_events (chat_id, user_id, id);
comment on table member_events is 'Changes of membership that the bots of the chat have still to hear of.';
