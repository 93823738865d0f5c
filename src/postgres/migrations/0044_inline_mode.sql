-- Inline mode of a bot (decision 0054).
alter table bots
  add column inline_placeholder text,
  add column inline_feedback boolean not null default false;
comment on column bots.inline_placeholder is 'Text in the composer after the username of the bot. Null while inline mode is off.';
comment on column bots.inline_feedback is 'Whether the bot gets the results that people choose.';
