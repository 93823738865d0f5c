-- What a bot says of itself, by language. `bots.name` stays the name at creation: it is shown where no name was set.
alter table bots
  add column names jsonb not null default '{}',
  add column descriptions jsonb not null default '{}',
  add column short_descriptions jsonb not null default '{}',
  add column descriptions_version bigint not null default nextval('control_versions');
comment on column bots.names is 'Language code -> text; the key '''' holds the default. A language without a text has no key.';
comment on column bots.descriptions_version is 'Of both kinds of descriptions: they have a copy in Redis of their own.';
