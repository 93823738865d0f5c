-- serves 0044
-- Refuses a flush of a partition whose incarnation was raised after its journal was read.
create function refuse_older_flush(partition int) returns bigint language plpgsql as $$
begin
  raise exception 'the incarnation of partition % was raised after its journal was read', partition using errcode = 'PTL03';
end $$;
