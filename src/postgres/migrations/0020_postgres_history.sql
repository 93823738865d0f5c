-- serves 0019
-- How far this database has committed. Redis knows it too, so that a Postgres that went back in time is recognised.
create table control_marks (
  shard int primary key,
  mark bigint not null default 0
) with (fillfactor = 50);
comment on table control_marks is 'Counters that each changing transaction raises: several, so that transactions do not wait for each other.';

alter table partitions add column rewrite_after bigint;
comment on column partitions.rewrite_after is 'Postgres went back to this version: what is newer and still in Redis is written again. Null when that is done.';

-- The server behind a connection: another database, another timeline or another start is another server.
create function server_identity() returns text language sql stable as $$
  select (select oid::text from pg_database where datname = current_database())
    || ' ' || case when pg_is_in_recovery() then 'standby' else left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) end
    || ' ' || extract(epoch from pg_postmaster_start_time())::text
$$;

-- Revocations of the present transaction, a line each: + and what was revoked, - and what is accepted again.
create function note_revocation(line text) returns void language sql as $$
  select set_config('petrel.revocations', coalesce(current_setting('petrel.revocations', true), '') || line || E'\n', true);
$$;

-- Called at the end of a transaction. Gives no row for one that changed nothing.
create function raise_control_mark(of_shard int, checked_server text)
returns table (raised bigint, last_id bigint, last_version bigint, revocations text) language plpgsql as $$
begin
  if pg_current_xact_id_if_assigned() is null then return; end if;
  if server_identity() <> checked_server then
    raise exception 'this server was not compared with Redis yet' using errcode = 'PTL01';
  end if;
  insert into control_marks as m (shard, mark) values (of_shard, 1)
    on conflict (shard) do update set mark = m.mark + 1 returning m.mark into raised;
  last_id := (select s.last_value from ids s);
  last_version := (select s.last_value from control_versions s);
  revocations := coalesce(current_setting('petrel.revocations', true), '');
  return next;
end $$;

create or replace function keep_former_bot_token() returns trigger language plpgsql as $$
begin
  -- Under a new pepper a token has another lookup value and is the same token.
  if coalesce(current_setting('petrel.rotating', true), '') <> '1' then
    insert into former_tokens (hmac) values (old.token_hmac) on conflict do nothing;
    perform note_revocation('+' || encode(old.token_hmac, 'base64'));
  end if;
  return null;
end $$;
create or replace function keep_former_user_token() returns trigger language plpgsql as $$
begin
  insert into former_tokens (hmac) values (old.hmac) on conflict do nothing;
  perform note_revocation('+' || encode(old.hmac, 'base64'));
  return null;
end $$;

create function note_blocked_token() returns trigger language plpgsql as $$
begin
  perform note_revocation('+' || encode(new.blocked_hmac, 'base64'));
  return null;
end $$;
create trigger blocked_bot_token after update of blocked_hmac on bots
  for each row when (new.blocked_hmac is not null and new.blocked_hmac is distinct from old.blocked_hmac)
  execute function note_blocked_token();

create function note_suspension() returns trigger language plpgsql as $$
begin
  perform note_revocation(case when new.suspended_at is null then '-' else '+' end || tg_argv[0] || ':' || new.id);
  return null;
end $$;
create trigger suspended_bot after update of suspended_at on bots
  for each row when ((new.suspended_at is null) <> (old.suspended_at is null)) execute function note_suspension('bot');
create trigger suspended_user after update of suspended_at on users
  for each row when ((new.suspended_at is null) <> (old.suspended_at is null)) execute function note_suspension('user');
