-- How far the removal of what is past its age has come: one process at a time goes on where the last one stopped.
create table retention (
  what text primary key,
  place jsonb,
  ended_at timestamptz
);
comment on table retention is 'A row a kind of data. place: where a pass stands, null between passes.';

-- Whether an old file is the picture of a bot is asked by its key.
create index on bots using gin (pictures jsonb_path_ops);

-- What one person put on posts, when their account ends or is exported.
create index on post_reactions (user_id, partition, number) where record is not null;

-- The row of a person who is no more stays, nameless: chats that they made refer to it.
alter table users add column deleted_at timestamptz;

create table account_removals (
  user_id bigint primary key references users,
  place jsonb,
  began_at timestamptz not null default now(),
  next_at timestamptz not null default now()
);
comment on table account_removals is 'Accounts that have ended and of which something is still to be removed. place: where that stands.';
create index on names (free_at) where free_at is not null;
