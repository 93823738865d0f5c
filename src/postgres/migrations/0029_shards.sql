-- serves 0024
-- Which database has what is written behind of a partition. A partition without a row lies in this database, which is shard 0.
create table shard_map (
  partition int primary key,
  shard int not null,
  paused boolean not null default false
);
comment on table shard_map is 'Read in the control database alone. Its epoch is in installation: each change of the map raises it.';
comment on column shard_map.paused is 'Nothing is written behind for the partition while it is moved: the journal holds it.';

-- Each database says itself which partitions it no longer takes: a process with an old map cannot write there.
alter table partitions add column left_at timestamptz;
comment on column partitions.left_at is 'The partition was moved to another database.';

create function refuse_left_partition(partition int) returns bigint language plpgsql as $$
begin
  raise exception 'partition % was moved to another database', partition using errcode = 'PTL02';
end $$;

-- A replay lies beside the dead letters that it takes, which may be in another database than the note of it in control_outbox was.
alter table webhook_replays drop constraint webhook_replays_pkey;
alter table webhook_replays add primary key (bot_id, id), add column note jsonb;
comment on column webhook_replays.note is 'Who asked for it, until the audit log tells of it.';
