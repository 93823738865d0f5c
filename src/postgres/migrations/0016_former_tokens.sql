-- The management bot has no token, and neither has a deleted bot: where there was none, there is none to remember.
drop trigger former_bot_token on bots;
drop trigger former_bot on bots;
create trigger former_bot_token after update of token_hmac on bots
  for each row when (old.token_hmac is not null and old.token_hmac is distinct from new.token_hmac)
  execute function keep_former_bot_token();
create trigger former_bot after delete on bots
  for each row when (old.token_hmac is not null) execute function keep_former_bot_token();
