-- Polls, their results and votes. The flusher writes these rows from the journal.
create table polls (
  partition bigint not null,
  number bigint not null,
  version bigint not null,
  record bytea,
  deleted_at timestamptz,
  primary key (partition, number)
);
create index on polls (deleted_at) where deleted_at is not null;
create index on polls (number) where record is not null;
comment on table polls is 'Chat, bot and definition of a poll. The number contains the Unix time of its creation in ms.';

create table poll_results (
  partition bigint not null,
  number bigint not null,
  version bigint not null,
  record bytea,
  deleted_at timestamptz,
  primary key (partition, number)
);
create index on poll_results (deleted_at) where deleted_at is not null;
comment on table poll_results is 'Voters of a poll, whether it was stopped, and votes for each option.';

create table poll_votes (
  partition bigint not null,
  number bigint not null,
  user_id bigint not null,
  version bigint not null,
  record bytea,
  deleted_at timestamptz,
  primary key (partition, number, user_id)
);
create index on poll_votes (user_id, partition, number) where record is not null;
create index on poll_votes (deleted_at) where deleted_at is not null;
comment on table poll_votes is 'The options for which a person voted, and when.';
