/** Checks of files and other content: photos, documents, albums, locations, contacts, dice and polls. */
import { type Check, expectLike, expectTrue, type Session, show } from './check.js';
import { mp4, png, sticker as square, wav } from './samples.js';

const check = (proves: string, run: Check['run'], needs: Check['needs'] = ['chat']): Check => ({
  subject: 'media',
  proves,
  needs,
  run,
});

const file = (bytes: Buffer, name: string) => ({ bytes, name });
const isText = (value: unknown) => typeof value === 'string' && value !== '';

async function photos(s: Session): Promise<void> {
  const at = { chat_id: s.chat, caption: 'A <b>photo</b>', parse_mode: 'HTML' };
  const caption = { caption: 'A photo', caption_entities: [{ type: 'bold', offset: 2, length: 5 }] };
  const sent = await s.result('sendPhoto', at, { files: { photo: file(png, 'a.png') } });
  expectLike(sent, caption, 'the photo');
  const attached = { ...at, photo: 'attach://here' };
  expectLike(await s.result('sendPhoto', attached, { files: { here: file(png, 'b.png') } }), caption, 'it');
  const { file_id, width, height } = sent.photo.at(-1);
  expectTrue(width === 64 && height === 64, `the photo has ${width} × ${height} pixels instead of 64 × 64`);
  const found = await s.result('getFile', { file_id });
  expectLike(found, { file_path: isText, file_size: png.length }, 'getFile');
  const { status, bytes } = await s.client.download(found.file_path);
  expectTrue(status === 200 && bytes.equals(png), `the download has status ${status} and other bytes`);
  const again = await s.result('sendPhoto', { chat_id: s.chat, photo: file_id });
  expectLike(again.photo.at(-1), { file_unique_id: sent.photo.at(-1).file_unique_id }, 'the same photo');
  await s.result('sendPhoto', { chat_id: s.chat, photo: 'https://example.org/picture.jpg' });
  await s.refused('sendPhoto', { ...at, caption: 'я'.repeat(1_025), photo: file_id }, 'caption_too_long');
  await s.refused('sendPhoto', { chat_id: s.chat, photo: 'no file' }, 'wrong_file_id');
}

async function files(s: Session): Promise<void> {
  const at = { chat_id: s.chat };
  for (const [method, name, bytes, filename] of [
    ['sendDocument', 'document', Buffer.from('seven words'), 'words.txt'],
    ['sendAudio', 'audio', wav, 'tone.wav'],
    ['sendVoice', 'voice', wav, 'voice.wav'],
    ['sendVideo', 'video', mp4, 'film.mp4'],
    ['sendAnimation', 'animation', mp4, 'film.mp4'],
    ['sendVideoNote', 'video_note', mp4, 'note.mp4'],
  ] as const) {
    const sent = await s.result(method, at, { files: { [name]: file(bytes, filename) } });
    expectLike(sent[name], { file_id: isText, file_unique_id: isText, file_size: bytes.length }, method);
    const again = await s.result(method, { ...at, [name]: sent[name].file_id });
    expectLike(again[name], { file_unique_id: sent[name].file_unique_id }, `${method} by file_id`);
  }
}

async function albums(s: Session): Promise<void> {
  const photo = (media: string, caption: string) => ({ type: 'photo', media, caption });
  const media = [photo('attach://one', 'one'), photo('attach://two', 'two')];
  const uploads = { one: file(png, 'one.png'), two: file(png, 'two.png') };
  const sent = await s.result('sendMediaGroup', { chat_id: s.chat, media }, { files: uploads });
  const [first, second] = sent;
  expectLike(sent, [{ caption: 'one' }, { caption: 'two' }], 'the album');
  expectTrue(isText(first.media_group_id) && first.media_group_id === second.media_group_id, 'no album');
}

async function mediaEdits(s: Session): Promise<void> {
  const sent = await s.result('sendPhoto', { chat_id: s.chat }, { files: { photo: file(png, 'a.png') } });
  const at = { chat_id: s.chat, message_id: sent.message_id };
  const captioned = await s.result('editMessageCaption', { ...at, caption: 'new' });
  expectLike(
    captioned,
    { caption: 'new', message_id: at.message_id, edit_date: Number.isInteger },
    'the edit',
  );
  await s.refused('editMessageText', { ...at, text: 'x' }, 'no_text_to_edit');
  const other = await s.result('sendPhoto', { chat_id: s.chat }, { files: { photo: file(png, 'b.png') } });
  const media = { type: 'document', media: 'attach://it', caption: 'document' };
  const edited = await s.result(
    'editMessageMedia',
    { chat_id: s.chat, message_id: other.message_id, media },
    { files: { it: file(Buffer.from('words'), 'w.txt') } },
  );
  expectLike(edited, { caption: 'document', document: { file_id: isText, file_size: 5 } }, 'the edit');
  expectTrue(edited.photo === undefined, `the edited message still has a photo: ${show(edited)}`);
}

async function objects(s: Session): Promise<void> {
  const at = { chat_id: s.chat };
  const place = { latitude: 56.95, longitude: 24.1 };
  expectLike(await s.result('sendLocation', { ...at, ...place }), { location: place }, 'the message');
  const venue = { title: 'Market', address: 'Street 1' };
  expectLike(
    await s.result('sendVenue', { ...at, ...place, ...venue }),
    { venue: { ...venue, location: place } },
    'the message',
  );
  const contact = { phone_number: '+37120000000', first_name: 'Ann' };
  expectLike(await s.result('sendContact', { ...at, ...contact }), { contact }, 'the message');
  const isPips = (value: unknown) => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 6;
  expectLike(await s.result('sendDice', at), { dice: { emoji: '🎲', value: isPips } }, 'the message');
  await s.refused('sendDice', { ...at, emoji: 'x' }, 'emoji_invalid');
  await s.refused('sendLocation', { ...at, latitude: 91, longitude: 0 }, 'parameter_wrong', {
    name: 'latitude',
    what: 'a number from -90 to 90',
  });
}

async function liveLocations(s: Session): Promise<void> {
  const place = { latitude: 56.95, longitude: 24.1 };
  const live = { ...place, live_period: 600 };
  const { message_id, location } = await s.result('sendLocation', { chat_id: s.chat, ...live });
  expectLike(location, live, 'the live location');
  const at = { chat_id: s.chat, message_id };
  const moved = await s.result('editMessageLiveLocation', { ...at, ...place, latitude: 57 });
  expectLike(moved.location, { ...live, latitude: 57 }, 'the moved location');
  const other = await s.result('sendLocation', { chat_id: s.chat, ...live });
  const stopped = await s.result('stopMessageLiveLocation', { ...at, message_id: other.message_id });
  expectTrue(stopped.location.live_period === undefined, 'the stopped location is still live');
  const again = { ...at, message_id: other.message_id };
  await s.refused('stopMessageLiveLocation', again, 'message_cant_be_edited');
  await s.refused(
    'stopMessageLiveLocation',
    { ...at, message_id: await s.send() },
    'no_live_location_to_edit',
  );
}

async function stickers(s: Session): Promise<void> {
  const { username } = await s.result('getMe');
  const set = { user_id: s.chat, name: `check_${Date.now().toString(36)}_by_${username}` };
  const made = { format: 'static', emoji_list: ['👍'] };
  const one = { sticker: 'attach://one', ...made };
  const files = { one: file(square, 'one.png') };
  await s.result('createNewStickerSet', { ...set, title: 'Check', stickers: [one] }, { files });
  try {
    const upload = { files: { sticker: file(square, 'two.png') } };
    const { file_id } = await s.result('uploadStickerFile', { ...set, sticker_format: 'static' }, upload);
    await s.result('addStickerToSet', { ...set, sticker: { sticker: file_id, ...made } });
    const read = async () => (await s.result('getStickerSet', { name: set.name })).stickers;
    const [first] = await read();
    const sent = await s.result('sendSticker', { chat_id: s.chat, sticker: first.file_id });
    expectLike(sent.sticker, { set_name: set.name, emoji: '👍', width: 512 }, 'the sticker');
    const sticker = first.file_id;
    await s.result('setStickerPositionInSet', { sticker, position: 1 });
    const places = (await read()).map((each: typeof first) => each.file_unique_id);
    expectTrue(places[1] === first.file_unique_id, 'the sticker was not moved');
    await s.result('setStickerEmojiList', { sticker, emoji_list: ['🔥'] });
    await s.result('setStickerKeywords', { sticker, keywords: ['fire'] });
    await s.result('setStickerSetTitle', { name: set.name, title: 'Other' });
    await s.result('replaceStickerInSet', { ...set, old_sticker: sticker, sticker: one }, { files });
    await s.refused('deleteStickerFromSet', { sticker }, 'sticker_set_not_modified');
    await s.result('deleteStickerFromSet', { sticker: (await read())[0].file_id });
  } finally {
    await s.result('deleteStickerSet', { name: set.name });
  }
  await s.refused('getStickerSet', { name: set.name }, 'sticker_set_invalid');
}

async function polls(s: Session): Promise<void> {
  const options = ['tea', 'milk'];
  const { message_id, poll } = await s.result('sendPoll', { chat_id: s.chat, question: 'What?', options });
  const shown = options.map((text) => ({ text, voter_count: 0 }));
  expectLike(poll, { question: 'What?', options: shown, is_closed: false, is_anonymous: true }, 'the poll');
  const at = { chat_id: s.chat, message_id };
  expectLike(await s.result('stopPoll', at), { id: poll.id, is_closed: true, options: shown }, 'the poll');
  await s.refused('stopPoll', at, 'poll_closed');
  await s.refused('stopPoll', { ...at, message_id: await s.send() }, 'message_not_poll');
  const long = { chat_id: s.chat, question: 'x', options: ['x'.repeat(101)] };
  await s.refused('sendPoll', long, 'poll_option_too_long', { what: '100' });
}

export const mediaChecks: readonly Check[] = [
  check('photos are uploaded, downloaded and sent again', photos),
  check('every kind of file is uploaded and sent again', files),
  check('sendMediaGroup sends an album', albums),
  check('captions and media are edited', mediaEdits),
  check('locations, venues, contacts and dice are sent', objects),
  check('live locations are moved and stopped', liveLocations),
  check('stickers are sent, and sets of stickers are changed', stickers, ['direct']),
  check('polls are sent and closed', polls),
  check(
    'getFile refuses an unknown file',
    (s) => s.refused('getFile', { file_id: 'no file' }, 'wrong_file_id'),
    [],
  ),
];
