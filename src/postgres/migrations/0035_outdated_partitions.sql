-- serves 0034
-- A database that a partition has left may still have its rows, while newer ones are written to another database. A process that was
-- suspended with its machine may still read them, because its clock stood still too.
alter table partitions add column outdated boolean not null default false;
comment on column partitions.outdated is 'Rows of the partition must not be read here: another database has newer ones.';

-- Each read of a partition's rows runs this before, in its own transaction.
create function require_current(of_partitions int[]) returns void language plpgsql stable as $$
begin
  if exists (select from partitions where partition = any(of_partitions) and outdated) then
    raise exception 'a partition of these was moved to another database' using errcode = 'PTL02';
  end if;
end $$;

-- A standby must not be read either once a partition has left its database, where the rows are deleted then.
create or replace function require_replayed(of_partition int, of_version bigint) returns void language plpgsql stable as $$
begin
  if not pg_is_in_recovery() or not exists (
    select from partitions
     where partition = of_partition and flushed_version >= of_version and rewrite_after is null and left_at is null
  ) then
    raise exception 'this replica does not have it yet' using errcode = 'PTL02';
  end if;
end $$;
