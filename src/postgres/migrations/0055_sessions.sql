-- serves 0049
-- Sessions are tokens that were issued by a sign-in (decision 0082).
alter table user_tokens add column agent text;
comment on column user_tokens.agent is 'Family of the browser that signed in, or empty if unknown. Null for other tokens.';
