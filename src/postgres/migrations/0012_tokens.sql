-- A token that leaked is dead while the bot's live lookup value is the one that was blocked: any new token ends that.
alter table bots add column blocked_hmac bytea;
alter table bots add column blocked_at timestamptz;

-- Lookup values of tokens that were replaced or revoked: who still uses one does not guess.
create table former_tokens (
  hmac bytea primary key,
  ended_at timestamptz not null default now()
);
create index on former_tokens (ended_at);

create function keep_former_bot_token() returns trigger language plpgsql as $$
begin
  -- Under a new pepper a token has another lookup value and is the same token.
  if coalesce(current_setting('petrel.rotating', true), '') <> '1' then
    insert into former_tokens (hmac) values (old.token_hmac) on conflict do nothing;
  end if;
  return null;
end $$;
create function keep_former_user_token() returns trigger language plpgsql as $$
begin
  insert into former_tokens (hmac) values (old.hmac) on conflict do nothing;
  return null;
end $$;
create trigger former_bot_token after update of token_hmac on bots
  for each row when (old.token_hmac is distinct from new.token_hmac) execute function keep_former_bot_token();
create trigger former_bot after delete on bots for each row execute function keep_former_bot_token();
create trigger former_user_token after delete on user_tokens for each row execute function keep_former_user_token();

-- Tokens of people are kept as lookup values alone: under a new pepper each moves when it is used next.
alter table user_tokens add column former_pepper boolean not null default false;

create table leaks (
  id bigint generated always as identity primary key,
  bot_id bigint,
  user_id bigint,
  found_at timestamptz not null default now(),
  reported_by text not null,
  place text not null
);
comment on table leaks is 'Tokens found in public, once each: whose, by whom and where. Tokens in places are masked.';
create index on leaks (bot_id) where bot_id is not null;

-- Copies of a webhook in Redis are ordered by both; deliveries go by version, which a new encryption key leaves alone.
alter table webhooks add column sealed_version bigint not null default 0;
