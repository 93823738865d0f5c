-- serves 0019
-- Asked on a standby before it is read from: whether it has replayed all that was flushed of a partition up to a version.
create function require_replayed(of_partition int, of_version bigint) returns void language plpgsql stable as $$
begin
  if not pg_is_in_recovery() or not exists (
    select from partitions where partition = of_partition and flushed_version >= of_version and rewrite_after is null
  ) then
    raise exception 'this replica does not have it yet' using errcode = 'PTL02';
  end if;
end $$;
