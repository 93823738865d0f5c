/** English texts of the management bot. The other languages have the same texts with the same placeholders. */
export const en = {
  // The bot's own profile
  bot_name: 'Petrel',
  bot_description:
    'Create and manage your bots: tokens, names and descriptions, who may write to them, transfer to another person, deletion. Press Start.',
  bot_short_description: 'Creates and manages bots.',
  command_newbot: 'create a bot',
  command_mybots: 'my bots',
  command_token: 'show the token of a bot',
  command_revoke: 'issue a new token for a bot',
  command_setname: 'change the name of a bot',
  command_setdescription: 'change the description of a bot',
  command_setabouttext: 'change the short description of a bot',
  command_setwriters: 'choose who may write to a bot',
  command_transfer: 'transfer a bot to another person',
  command_deletebot: 'delete a bot',
  command_cancel: 'cancel the current step',
  command_help: 'what this bot can do',

  // Conversation
  start: 'Hello! I create and manage your bots.\n\n{commands}',
  help: 'This is what I can do:\n\n{commands}',
  unknown: 'I do not understand that. /help shows what I can do.',
  cancelled: 'Cancelled. /help shows what I can do.',
  nothing_to_cancel: 'There is nothing to cancel.',
  failed: 'Something went wrong. Please try again.',
  later: 'This is not possible right now. Please try again in a moment.',
  old_button: 'This button is out of date. Send /mybots for new ones.',
  not_yours: 'You do not own this bot.',
  expired: 'This question has expired. Please start again.',

  // Creating
  ask_new_name: 'Choose a name for the new bot. You can change it later.',
  ask_new_username:
    'Now choose a username for {name}: 3 to 32 Latin letters, digits and underscores, ending in “bot”. For example: weather_bot.',
  name_invalid: 'This name is not valid. Please send another one.',
  name_too_long: 'This name is too long. The limit is 64 characters. Please send a shorter one.',
  username_invalid:
    'This username is not valid. It must have 3 to 32 Latin letters, digits or single underscores, begin with a letter and end in “bot”. Please send another one.',
  username_taken: 'The username @{username} is taken. Please send another one.',
  too_many_bots: 'You have reached the maximum number of bots. Delete one before you create another.',
  created:
    'Done! {name} is now @{username}.\n\nIts token for the bot interface:\n{token}\n\nKeep it secret: whoever has it controls the bot. Use /mybots to manage your bots.',

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
  button_to_list: '« All bots',
  button_cancel: 'Cancel',

  // Tokens
  token_page: 'The token of @{username}. Whoever has it controls the bot.',
  button_show_token: 'Show the token',
  button_issue: 'Issue a new token',
  token_shown: 'The token of @{username}:\n{token}',
  token_hidden: '(token not shown)',
  token_blocked: 'The token of this bot was found in public and is blocked. Issue a new one: /revoke',
  issue_ask: 'Issue a new token for @{username}? The current token stops working immediately.',
  button_issue_yes: 'Yes, issue a new one',
  issued: 'The old token of @{username} no longer works. The new token:\n{token}',
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
  ask_name: 'Send the new name of @{username} ({language}), up to 64 characters.\n\nCurrent name: {current}',
  ask_description:
    'Send the new description of @{username} ({language}), up to 512 characters. People see it before they press Start.\n\nCurrent description: {current}',
  ask_short_description:
    'Send the new short description of @{username} ({language}), up to 120 characters. It is shown below the name of the bot.\n\nCurrent short description: {current}',
  nothing_set: '—',
  button_remove_text: 'Remove the current text',
  description_too_long:
    'This description is too long. The limit is 512 characters. Please send a shorter one.',
  short_description_too_long:
    'This short description is too long. The limit is 120 characters. Please send a shorter one.',
  text_expected: 'Please send the text as a message, or /cancel.',
  text_set: 'Saved for @{username} ({language}).',
  text_removed: 'Removed for @{username} ({language}).',

  // Who may write
  writers_page: 'Who may write to @{username} in a direct chat?\n\nCurrently: {writers}',
  writers_all: 'everybody',
  writers_owner: 'only you',
  writers_selected: 'only these people: {usernames}',
  button_writers_all: 'Everybody',
  button_writers_selected: 'Selected people',
  button_writers_owner: 'Only me',
  ask_writers:
    'Send the usernames of the people who may write to @{username}, separated by spaces or line breaks. They replace the current list. You can always write.',
  writers_set: 'Saved. People who may write to @{username}: {writers}',
  writers_unknown: 'No person has the username @{username}. Please send the whole list again.',

  // Transfer
  ask_transfer:
    'Who should own @{username}? Send the username of the new owner. It must be a person, not a bot.',
  transfer_unknown: 'No person has this username. Please send another one, or /cancel.',
  transfer_self: 'You already own this bot. Please send another username, or /cancel.',
  transfer_full: 'This person has reached the maximum number of bots. Send another username, or /cancel.',
  transfer_ask:
    'Transfer @{username} to @{recipient}?\n\nYou immediately lose access to the token, settings and statistics of the bot. Its current token stops working, and the new owner gets a new one. Its texts, chats and webhook stay. Only the new owner can transfer the bot back.',
  button_transfer_yes: 'Yes, transfer it to @{recipient}',
  transferred: '@{username} now belongs to @{recipient}. You no longer have access to it.',
  transfer_offered: '@{username} will belong to @{recipient} once they accept. Until then it is yours.',
  button_accept: 'Accept',
  button_decline: 'Decline',
  offer_accepted: '@{username} now belongs to you. Get its new token with /token.',
  offer_declined: 'You declined @{username}.',
  offer_gone: 'This offer is no longer valid.',

  // Deletion
  delete_ask:
    'Delete @{username} permanently? Its token stops working immediately, its webhook is removed, and the bot cannot be restored.',
  button_delete_yes: 'Yes, delete the bot',
  deleted: '@{username} has been deleted.',

  // Notices
  notice_leak_found:
    'A token of @{username} was found in public ({where}) and no longer works. Issue a new one: /revoke',
  notice_user_token_leaked: 'Your access token “{name}” was found in public ({where}) and no longer works.',
  notice_webhook_failing:
    'The webhook of @{username} has been failing since {since}. Last error: {error}\n\nUpdates are kept for up to 24 hours.',
  notice_webhook_removed:
    'The webhook of @{username} was removed, because its receiver answered 410 Gone for 23 hours. The bot can now poll for updates.',
  notice_transferred_to_you:
    '{from} transferred @{username} to you. Find it under /mybots. It has a new token.',
  notice_transfer_offered:
    '{from} wants to transfer @{username} to you. Do you accept? The offer is valid for one week.',
  notice_transfer_accepted:
    '{to} accepted: @{username} now belongs to them, and you no longer have access to it.',
  notice_transfer_declined: '{to} declined @{username}. It stays yours.',
  somewhere: 'place unknown',
  somebody: 'Somebody',
} as const;

export type TextKey = keyof typeof en;
/** Every text, so that a language that lacks one does not compile. */
export type ManageTexts = Readonly<Record<TextKey, string>>;
