-- Browsers that people are notified in, chats they muted, and who is to be notified of what.
create table push_subscriptions (
  id bigint generated always as identity primary key,
  user_id bigint not null references users on delete cascade,
  endpoint text not null unique,
  p256dh bytea not null,
  auth bytea not null,
  token_id bigint references user_tokens on delete cascade,
  failures int not null default 0,
  created_at timestamptz not null default now()
);
create index on push_subscriptions (user_id);
create index on push_subscriptions (token_id);
comment on column push_subscriptions.token_id is 'The token it was made with: it goes with it. Null for a token of an identity provider.';

create table chat_mutes (
  user_id bigint not null references users on delete cascade,
  chat_id bigint not null,
  until timestamptz,
  primary key (user_id, chat_id)
);
comment on column chat_mutes.chat_id is 'As the person names the chat: a direct chat by its bot.';
comment on column chat_mutes.until is 'Null for ever.';

-- Notifications are best effort: what a crash of Postgres takes with it is not written twice to be safe from one.
create unlogged table push_due (
  user_id bigint not null,
  chat_id bigint not null,
  message_id bigint not null,
  due_at timestamptz,
  pushed_at timestamptz,
  noted_at timestamptz not null default now(),
  primary key (user_id, chat_id)
);
create index on push_due (due_at) where due_at is not null;
create index on push_due (noted_at);
comment on table push_due is 'One row a person and chat: the newest message that was noted. Kept for a while after, so that no message counts twice.';
