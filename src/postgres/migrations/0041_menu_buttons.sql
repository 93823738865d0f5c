-- The menu button of a bot, for all people and for single ones, and the rights that the bot asks for as administrator.
alter table bots
  add column menu_button jsonb,
  add column default_rights jsonb not null default '{}';
comment on column bots.default_rights is 'Names of rights, by type of chat: group, channel.';

create table bot_menu_buttons (
  bot_id bigint not null references bots,
  user_id bigint not null references users,
  button jsonb not null,
  primary key (bot_id, user_id)
);
create index on bot_menu_buttons (user_id);
comment on table bot_menu_buttons is 'Menu buttons that a bot set for the direct chat with one person.';
