-- Who may add a person to groups and channels, and invitations where somebody may not.
alter table users add column add_to_groups text not null default 'everyone'
  check (add_to_groups in ('everyone', 'shared_chats', 'nobody'));

create table chat_invitations (
  id bigint generated always as identity,
  user_id bigint not null references users,
  chat_id bigint not null references chats,
  by_id bigint not null,
  created_at timestamptz not null default now(),
  declined_at timestamptz,
  primary key (user_id, chat_id)
);
comment on column chat_invitations.declined_at is 'A declined invitation stays: nobody invites the person to that chat again.';

create table stranger_adds (
  user_id bigint not null references users,
  created_at timestamptz not null default now()
);
create index on stranger_adds (user_id, created_at);
comment on table stranger_adds is 'When strangers added a person to chats, for a day.';
