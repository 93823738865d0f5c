-- serves 0024
-- Bots are deleted, and the rows and names of deleted ones stay: how many a person creates in a day has a bound.
create table bot_creations (
  user_id bigint not null,
  created_at timestamptz not null default now()
);
create index on bot_creations (user_id, created_at);
comment on table bot_creations is 'When people created bots, for a day.';
