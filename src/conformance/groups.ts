/** Checks of a group in which the bot is an administrator, and of its members. Restores the group's settings. */
import { type Check, expectLike, expectTrue, type Result, type Session, show } from './check.js';
import { png } from './samples.js';

const check = (proves: string, run: Check['run'], needs: Check['needs'] = ['group']): Check => ({
  subject: 'groups',
  proves,
  needs,
  run,
});

async function describes(s: Session): Promise<void> {
  const chat_id = s.group;
  expectLike(await s.result('getChat', { chat_id }), { id: chat_id, type: 'group' }, 'getChat');
  const own = { user: { id: s.me.id }, status: 'administrator' };
  expectLike(await s.result('getChatMember', { chat_id, user_id: s.me.id }), own, 'getChatMember');
  const all: readonly Result[] = await s.result('getChatAdministrators', { chat_id });
  const statuses = all.map(({ status }) => status);
  expectTrue(
    statuses.filter((each) => each === 'creator').length === 1,
    `the statuses are ${show(statuses)}`,
  );
  expectTrue(
    all.some(({ user }) => user.id === s.me.id),
    'getChatAdministrators lacks the bot itself',
  );
  const count = await s.result('getChatMemberCount', { chat_id });
  expectTrue(count >= all.length, `the group has ${count} members, but ${all.length} administrators`);
  expectTrue((await s.result('getChatMembersCount', { chat_id })) === count, 'getChatMembersCount differs');
  await s.refused('getChatMember', { chat_id, user_id: 9_999_999_999_998 }, 'chat_member_not_found');
}

async function settings(s: Session): Promise<void> {
  const chat_id = s.group;
  const { title, description = '' } = await s.result('getChat', { chat_id });
  const chosen = { title: 'Petrel conformance', description: `Since ${Date.now()}` };
  try {
    await s.result('setChatTitle', { chat_id, title: chosen.title });
    await s.result('setChatDescription', { chat_id, description: chosen.description });
    expectLike(await s.result('getChat', { chat_id }), chosen, 'getChat');
    await s.refused('setChatDescription', { chat_id, description: chosen.description }, 'about_not_modified');
  } finally {
    await s.result('setChatTitle', { chat_id, title });
    await s.result('setChatDescription', { chat_id, description });
  }
}

async function photo(s: Session): Promise<void> {
  const chat_id = s.group;
  await s.refused('setChatPhoto', { chat_id }, 'no_photo');
  await s.refused('setChatPhoto', { chat_id, photo: 'https://example.org/a.png' }, 'photo_not_uploaded');
  const had = (await s.result('getChat', { chat_id })).photo;
  if (had !== undefined) return;
  await s.result('setChatPhoto', { chat_id }, { files: { photo: { bytes: png, name: 'a.png' } } });
  const isText = (value: unknown) => typeof value === 'string';
  expectLike(await s.result('getChat', { chat_id }), { photo: { big_file_id: isText } }, 'getChat');
  await s.result('deleteChatPhoto', { chat_id });
  expectTrue((await s.result('getChat', { chat_id })).photo === undefined, 'getChat shows a deleted photo');
  await s.refused('deleteChatPhoto', { chat_id }, 'chat_not_modified');
}

async function permissions(s: Session): Promise<void> {
  const chat_id = s.group;
  const { permissions: before } = await s.result('getChat', { chat_id });
  const can_send_polls = !before.can_send_polls;
  const independent = { use_independent_chat_permissions: true };
  try {
    await s.result('setChatPermissions', {
      chat_id,
      permissions: { ...before, can_send_polls },
      ...independent,
    });
    expectLike(await s.result('getChat', { chat_id }), { permissions: { can_send_polls } }, 'getChat');
  } finally {
    await s.result('setChatPermissions', { chat_id, permissions: before, ...independent });
  }
}

async function links(s: Session): Promise<void> {
  const chat_id = s.group;
  const settings = { name: 'Conformance', member_limit: 3 };
  const { invite_link, ...made } = await s.result('createChatInviteLink', { chat_id, ...settings });
  try {
    expectLike(
      made,
      { ...settings, creator: { id: s.me.id }, is_primary: false, is_revoked: false },
      'the link',
    );
    const edited = await s.result('editChatInviteLink', { chat_id, invite_link, creates_join_request: true });
    expectLike(edited, { invite_link, creates_join_request: true }, 'the link');
    expectTrue(edited.member_limit === undefined, `an absent setting stayed: ${show(edited)}`);
    const both = { chat_id, member_limit: 3, creates_join_request: true };
    await s.refused('createChatInviteLink', both, 'member_limit_with_requests');
    await s.refused('createChatInviteLink', { chat_id, name: 'x'.repeat(33) }, 'link_name_too_long');
  } finally {
    const revoked = await s.result('revokeChatInviteLink', { chat_id, invite_link });
    expectLike(revoked, { invite_link, is_revoked: true }, 'the link');
  }
  const [first, second] = [
    await s.result('exportChatInviteLink', { chat_id }),
    await s.result('exportChatInviteLink', { chat_id }),
  ];
  expectTrue(first !== second, 'exportChatInviteLink returned the same link twice');
  expectLike(await s.result('getChat', { chat_id }), { invite_link: second }, 'getChat');
}

async function foreign(s: Session): Promise<void> {
  const chat_id = s.group;
  const { token } = s.second;
  const { message_id } = await s.result('sendMessage', { chat_id, text: 'of the first bot' });
  const edit = { chat_id, message_id, text: 'x' };
  await s.refused('editMessageText', edit, 'message_cant_be_edited', {}, { token });
  await s.refused('deleteMessage', { chat_id, message_id }, 'message_cant_be_deleted', {}, { token });
  await s.refused('pinChatMessage', { chat_id, message_id }, 'pin_not_allowed', {}, { token });
  await s.refused('setChatTitle', { chat_id, title: 'x' }, 'title_not_allowed', {}, { token });
  const given = { chat_id, from_chat_id: chat_id, message_id };
  const forwarded = await s.result('forwardMessage', given, { token });
  expectLike(forwarded, { forward_origin: { sender_user: { id: s.me.id } } }, 'the forward');
}

async function members(s: Session): Promise<void> {
  const at = { chat_id: s.group, user_id: s.second.id };
  const isNow = async (like: object) =>
    expectLike(await s.result('getChatMember', at), like, 'getChatMember');
  await isNow({ status: 'member', user: { id: s.second.id, is_bot: true } });
  const permissions = { can_send_messages: false };
  await s.result('restrictChatMember', { ...at, permissions });
  await isNow({ status: 'restricted', can_send_messages: false });
  const { token } = s.second;
  const say = { chat_id: s.group, text: 'x' };
  await s.refused('sendMessage', say, 'sending_not_permitted', { what: 'text messages' }, { token });
  const granted = ['messages', 'audios', 'documents', 'photos', 'videos', 'video_notes', 'voice_notes'];
  const all = [...granted, 'polls', 'other_messages'].map((name) => [`can_send_${name}`, true]);
  const lifted = { ...Object.fromEntries(all), can_add_web_page_previews: true };
  await s.result('restrictChatMember', { ...at, permissions: lifted });
  await s.result('promoteChatMember', { ...at, can_pin_messages: true });
  await isNow({ status: 'administrator', can_pin_messages: true, can_restrict_members: false });
  await s.result('setChatAdministratorCustomTitle', { ...at, custom_title: 'Keeper' });
  await isNow({ custom_title: 'Keeper' });
  await s.result('promoteChatMember', at);
  await isNow({ status: 'member' });
  await s.refused('banChatMember', { ...at, user_id: s.me.id }, 'cant_restrict_self');
}

async function bans(s: Session): Promise<void> {
  const at = { chat_id: s.group, user_id: s.second.id };
  await s.result('banChatMember', at);
  expectLike(await s.result('getChatMember', at), { status: 'kicked' }, 'getChatMember');
  const say = { chat_id: s.group, text: 'x' };
  await s.refused('sendMessage', say, 'not_group_member', {}, { token: s.second.token });
  await s.result('unbanChatMember', at);
  expectLike(await s.result('getChatMember', at), { status: 'left' }, 'getChatMember');
  await s.result('kickChatMember', at);
  await s.result('unbanChatMember', { ...at, only_if_banned: true });
}

async function direct(s: Session): Promise<void> {
  const chat_id = s.chat;
  const user_id = s.me.id;
  await s.refused('setChatTitle', { chat_id, title: 'x' }, 'private_chat_title');
  await s.refused('setChatDescription', { chat_id, description: 'x' }, 'private_chat_description');
  await s.refused('deleteChatPhoto', { chat_id }, 'private_chat_photo');
  await s.refused('setChatPermissions', { chat_id, permissions: {} }, 'private_chat_permissions');
  await s.refused('restrictChatMember', { chat_id, user_id, permissions: {} }, 'groups_only');
  await s.refused('banChatMember', { chat_id, user_id }, 'private_chat_ban');
  await s.refused('promoteChatMember', { chat_id, user_id }, 'private_chat_members');
  await s.refused('leaveChat', { chat_id }, 'private_chat_members');
  await s.refused('createChatInviteLink', { chat_id }, 'private_chat_links');
  await s.refused('approveChatJoinRequest', { chat_id, user_id }, 'private_chat_requests');
  await s.refused('getChatAdministrators', { chat_id }, 'private_chat_administrators');
}

async function requests(s: Session): Promise<void> {
  const at = { chat_id: s.group, user_id: s.second.id };
  for (const method of ['approveChatJoinRequest', 'declineChatJoinRequest'])
    await s.refused(method, at, 'already_participant');
}

export const groupChecks: readonly Check[] = [
  check('methods for groups are refused in direct chats', direct, ['direct']),
  check('getChat and getChatMember describe the group', describes),
  check('title and description are set', settings),
  check('the photo is set and deleted', photo),
  check('permissions are set', permissions),
  check('invite links are created, edited and revoked', links),
  check('approveChatJoinRequest and declineChatJoinRequest refuse a member', requests, ['group', 'second']),
  check('an ordinary member cannot change what others did', foreign, ['group', 'second']),
  check('members are restricted and promoted', members, ['group', 'second']),
  check('members are banned and unbanned', bans, ['group', 'second']),
];
