-- The management bot is a bot without owner and token: nobody can call methods in its name. `installation` has its id.
create table notices (
  id bigint generated always as identity primary key,
  user_id bigint not null references users on delete cascade,
  notice jsonb not null,
  created_at timestamptz not null default now(),
  next_at timestamptz not null default now(),
  tries int not null default 0,
  told_at timestamptz,
  refused text
);
create index on notices (next_at) where told_at is null;
create index on notices (told_at) where told_at is not null;
create index on notices (user_id);
comment on table notices is 'What the management bot tells people, noted in the transaction that it is about.';
comment on column notices.refused is 'Why nothing was sent, as the catalogue of answers names it: the person blocked the bot, for one.';

create table management_talks (
  user_id bigint primary key references users on delete cascade,
  update_id bigint not null,
  before jsonb not null,
  state jsonb not null,
  changed_at timestamptz not null default now()
);
comment on table management_talks is 'Where a person is in a conversation with the management bot.';
comment on column management_talks.before is 'What the update that changed it last began from: one that is delivered again goes the same way.';
