-- Messages lie in partitions by the day (UTC) on which they were sent, so that retention drops a table instead of deleting rows. The date
-- of a message never changes, and every record holds it. What was written before this migration becomes one partition, which ends row by
-- row until all in it is past its age. Flushers make the partitions of the days to come.
--
-- One transaction: it leaves no trace when it fails, and can be run again. Until its end nothing is written behind (journals hold what
-- comes) and cold messages are read as before; for the swap at its end readers wait, some milliseconds. Flushers of programs before this
-- schema no longer write.
do $$
declare
  cutover date;
begin
  lock table messages in share row exclusive mode;
  if exists (select from pg_publication_rel where prrelid = 'messages'::regclass)
    or exists (select from pg_subscription_rel where srrelid = 'messages'::regclass) then
    raise exception 'messages are being replicated, as by "petrel shards move": let it end first, or undo it';
  end if;

  create table messages_until (
    chat_id bigint not null,
    user_id bigint not null,
    message_id bigint not null,
    version bigint not null,
    day date not null,
    record bytea,
    deleted_at timestamptz
  ) with (fillfactor = 90);
  -- A record begins with a lead byte, the format (one byte), the version (an integer of any size) and the date (seconds, 32 bits).
  insert into messages_until (chat_id, user_id, message_id, version, day, record, deleted_at)
    select chat_id, user_id, message_id, version, date '1970-01-01' + coalesce(case
        when length(record) >= date_at + 5 and get_byte(record, date_at) in (206, 210) then
          ((get_byte(record, date_at + 1)::bigint << 24) + (get_byte(record, date_at + 2) << 16)
            + (get_byte(record, date_at + 3) << 8) + get_byte(record, date_at + 4)) / 86400
      end, 0)::int, record, deleted_at
      from messages, lateral (select 2 + case
          when length(record) < 3 then 0
          when get_byte(record, 2) < 128 or get_byte(record, 2) >= 224 then 1
          when get_byte(record, 2) in (204, 208) then 2
          when get_byte(record, 2) in (205, 209) then 3
          when get_byte(record, 2) in (202, 206, 210) then 5
          else 9 end as date_at) place;
  select greatest((now() at time zone 'UTC')::date, max(day)) + 1 into cutover from messages_until;
  alter table messages_until add primary key (chat_id, user_id, message_id, day);
  create index on messages_until (deleted_at) where deleted_at is not null;

  -- Longer than for other migrations, since all of the above would be done again.
  set local lock_timeout = '15s';
  drop table messages;
  create table messages (
    chat_id bigint not null,
    user_id bigint not null,
    message_id bigint not null,
    version bigint not null,
    day date not null,
    record bytea,
    deleted_at timestamptz,
    primary key (chat_id, user_id, message_id, day)
  ) partition by range (day);
  create index on messages (deleted_at) where deleted_at is not null;
  execute format('alter table messages attach partition messages_until for values from (minvalue) to (%L)', cutover);
  execute format('alter table messages_until rename to messages_until_%s', to_char(cutover, 'YYYYMMDD'));
  -- What no partition was made for: an insert never fails for want of one.
  create table messages_default partition of messages default with (fillfactor = 90);
end $$;
comment on column messages.user_id is 'The user of a direct chat, whose chat_id is its bot; 0 for groups and channels.';
comment on column messages.day is 'Day in UTC of the date in the record, which no edit changes. A message has one row: its day follows from it.';
