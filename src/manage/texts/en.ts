/** What the management bot says in English. The other languages have the same texts with the same placeholders. */
export const en = {
  // How the bot presents itself
  bot_name: 'Petrel',
  bot_description:
    'Here you create bots and look after them: tokens, names and descriptions, who may write to them, transfer to somebody else, deletion. Press Start.',
  bot_short_description: 'Creates bots and looks after them.',
  command_newbot: 'create a bot',
  command_mybots: 'my bots',
  command_token: 'show the token of a bot',
  command_revoke: 'issue a new token for a bot',
  command_setname: 'change the name of a bot',
  command_setdescription: 'change the description of a bot',
  command_setabouttext: 'change the short description of a bot',
  command_setwriters: 'choose who may write to a bot',
  command_transfer: 'give a bot to somebody else',
  command_deletebot: 'delete a bot',
  command_cancel: 'stop what has been begun',
  command_help: 'what this bot can do',

  // Conversation
  start: 'Hello! With me you create bots and look after them.\n\n{commands}',
  help: 'This is what I can do:\n\n{commands}',
  unknown: 'I did not understand that. /help shows what I can do.',
  cancelled: 'Stopped. /help shows what I can do.',
  nothing_to_cancel: 'There is nothing to stop.',
  failed: 'Something went wrong here, and nothing more was done. Please try again.',
  later: 'The service cannot do this right now. Please try again in a moment.',
  old_button: 'This button is out of date. Send /mybots for new ones.',
  not_yours: 'This bot is not yours.',
  expired: 'Too much time has passed. Please begin again.',

  // Creating
  ask_new_name: 'A new bot. What shall it be called? The name can be changed later.',
  ask_new_username:
    'Good. Now choose a username for {name}: 3 to 32 Latin letters, digits and underscores, ending in “bot”. For example: weather_bot.',
  name_invalid: 'A bot cannot be called that. Please send another name.',
  name_too_long: 'This name is too long: 64 characters at most. Please send a shorter one.',
  username_invalid:
    'This cannot be a username: it takes 3 to 32 Latin letters, digits and single underscores, begins with a letter and ends in “bot”. Please send another one.',
  username_taken: 'The username @{username} is taken. Please send another one.',
  too_many_bots: 'You have as many bots as one person may have. Delete one before you create another.',
  created:
    'Done! {name} is now @{username}.\n\nIts token for the bot interface:\n{token}\n\nKeep it secret: whoever has it controls the bot. /mybots leads to everything else.',

  // Lists and pages
  list: 'Choose one of your bots:',
  list_empty: 'You have no bots yet. /newbot creates one.',
  bot_page: '{name}, @{username}\n\nWhat would you like to do?',
  edit_page: 'What would you like to change about @{username}?',
  button_token: 'Token',
  button_edit: 'Edit',
  button_transfer: 'Transfer',
  button_delete: 'Delete',
  button_back: '« Back',
  button_to_list: '« To the list',
  button_cancel: 'Cancel',

  // Tokens
  token_page: 'The token of @{username}. Whoever has it controls the bot.',
  button_show_token: 'Show the token',
  button_issue: 'Issue a new token',
  token_shown: 'The token of @{username}:\n{token}',
  token_hidden: '(token not shown)',
  token_blocked: 'The token of this bot was found in public and is blocked. Issue a new one: /revoke',
  issue_ask:
    'Issue a new token for @{username}? The present one stops working at once, everywhere it is in use.',
  button_issue_yes: 'Yes, issue a new one',
  issued: 'The former token of @{username} no longer works. The new one:\n{token}',
  issued_note: 'A new token was issued for @{username}.',

  // Texts
  button_name: 'Name',
  button_description: 'Description',
  button_short_description: 'Short description',
  button_writers: 'Who may write',
  choose_language_name: 'For which language do you want to set the name of @{username}?',
  choose_language_description: 'For which language do you want to set the description of @{username}?',
  choose_language_short_description:
    'For which language do you want to set the short description of @{username}?',
  button_default_language: 'All other languages',
  default_language: 'all other languages',
  ask_name: 'Send the new name of @{username} ({language}), 64 characters at most.\n\nNow: {current}',
  ask_description:
    'Send the new description of @{username} ({language}), 512 characters at most. It is shown before the Start button is pressed.\n\nNow: {current}',
  ask_short_description:
    'Send the new short description of @{username} ({language}), 120 characters at most. It stands under the name on the page of the bot.\n\nNow: {current}',
  nothing_set: '—',
  button_remove_text: 'Remove the present text',
  description_too_long: 'This description is too long: 512 characters at most. Please send a shorter one.',
  short_description_too_long:
    'This short description is too long: 120 characters at most. Please send a shorter one.',
  text_expected: 'Please send it as plain text, or /cancel.',
  text_set: 'Saved for @{username} ({language}).',
  text_removed: 'Removed for @{username} ({language}).',

  // Who may write
  writers_page: 'Who may write to @{username} in a direct chat?\n\nNow: {writers}',
  writers_all: 'everybody',
  writers_owner: 'only you',
  writers_selected: 'only these people: {usernames}',
  button_writers_all: 'Everybody',
  button_writers_selected: 'Selected people',
  button_writers_owner: 'Only me',
  ask_writers:
    'Send the usernames of those who may write to @{username}, separated by spaces or line breaks. They replace the present list; you yourself may always write.',
  writers_set: 'Saved. Who may write to @{username} now: {writers}',
  writers_unknown: 'I know nobody with the username @{username}. Please send the whole list again.',

  // Transfer
  ask_transfer:
    'To whom do you want to give @{username}? Send the username of the new owner. It must be a person, not a bot.',
  transfer_unknown: 'I know nobody with this username. Please send another one, or /cancel.',
  transfer_self: 'This bot is yours already. Please send the username of somebody else, or /cancel.',
  transfer_full: 'This person has as many bots as one person may have. Choose somebody else, or /cancel.',
  transfer_ask:
    'Give @{username} to @{recipient}?\n\nYou lose access at once: to the token, the settings and the statistics of the bot. Its present token stops working and the new owner gets a new one. Its texts, its chats and its webhook stay. Only the new owner can give the bot back.',
  button_transfer_yes: 'Yes, give it to @{recipient}',
  transferred: '@{username} now belongs to @{recipient}. You no longer have access to it.',
  transfer_offered: '@{username} goes to @{recipient} as soon as they agree. Until then it is yours.',
  button_accept: 'Accept',
  button_decline: 'Decline',
  offer_accepted: '@{username} is yours now. It has a new token: /token',
  offer_declined: 'You have declined @{username}.',
  offer_gone: 'This offer no longer stands.',

  // Deletion
  delete_ask:
    'Delete @{username} for good? Its token stops working at once, its webhook is removed, and it cannot be brought back.',
  button_delete_yes: 'Yes, delete the bot',
  deleted: '@{username} has been deleted.',

  // Notices
  notice_leak_found:
    'A token of @{username} was found in public ({where}) and no longer works. Issue a new one: /revoke',
  notice_user_token_leaked: 'Your access token “{name}” was found in public ({where}) and no longer works.',
  notice_webhook_failing:
    'The webhook of @{username} has been failing since {since}. The last error: {error}\n\nUpdates wait up to 24 hours.',
  notice_webhook_removed:
    'The webhook of @{username} was removed: its receiver has answered for 23 hours that it is gone. The bot gets its updates by polling now.',
  notice_transferred_to_you:
    '{from} has given you @{username}. You find it under /mybots; it has a new token.',
  notice_transfer_offered:
    '{from} wants to give you @{username}. Do you accept? The offer stands for a week.',
  notice_transfer_accepted:
    '{to} has accepted: @{username} belongs to them now, and you no longer have access to it.',
  notice_transfer_declined: '{to} has declined @{username}. It stays yours.',
  somewhere: 'place unknown',
  somebody: 'Somebody',
} as const;

export type TextKey = keyof typeof en;
/** Every text, so that a language that lacks one does not compile. */
export type ManageTexts = Readonly<Record<TextKey, string>>;
