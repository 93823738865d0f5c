-- serves 0024
-- The move of partitions from one database to another, until it is finished. One at a time.
create table shard_moves (
  one boolean primary key default true check (one),
  partitions int[] not null,
  source int not null,
  target int not null,
  step text not null,
  since timestamptz not null default now(),
  runner text not null,
  renewed_at timestamptz not null default now()
);
comment on column shard_moves.step is 'What is being done, in this order: copy, pause, fence, switch, clean. Each may be repeated.';
comment on column shard_moves.runner is 'The process that moves them, until it has not renewed this for ten seconds.';

-- Which map each process follows.
create table shard_nodes (
  node text primary key,
  epoch int not null,
  shards int[] not null,
  trust_ms int not null,
  at timestamptz not null default now()
);
comment on column shard_nodes.epoch is '-1 while the process has read none.';
comment on column shard_nodes.trust_ms is 'How long it follows a map after it asked for it last.';

-- Refuses rows of a partition that is leaving the database.
create function refuse_moved_row() returns trigger language plpgsql as $$
begin
  raise exception 'its partition is being moved to another database' using errcode = 'PTL02';
end $$;
