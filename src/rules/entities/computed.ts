/**
 * Finds entities in plain text: commands, mentions, hashtags, cashtags, URLs and email addresses. Client libraries
 * dispatch commands by these entities.
 */
import { ruleLimits as limits } from '../limits.js';
import { isTopLevelDomain } from './domains.js';
import type { Entity } from './entity.js';

const {
  command_name_length_max: commandMax,
  username_length_min: nameMin,
  username_length_max: nameMax,
} = limits;

const command = new RegExp(
  `/[a-zA-Z0-9_]{1,${commandMax}}(?:@[a-zA-Z0-9_]{${nameMin},${nameMax}})?(?![\\p{L}\\p{N}_/<>@])`,
  'uy',
);
const mention = new RegExp(`@[a-zA-Z0-9_]{${nameMin},${nameMax}}(?![\\p{L}\\p{N}_@])`, 'uy');
const hashtag = /#(?=\p{N}*[\p{L}_])[\p{L}\p{M}\p{N}_]{1,256}(?![\p{L}\p{M}\p{N}_#])/uy;
const cashtag = /\$[A-Z]{1,8}(?![\p{L}\p{N}_$])/uy;

const label = '[\\p{L}\\p{N}](?:[\\p{L}\\p{M}\\p{N}_-]{0,61}[\\p{L}\\p{M}\\p{N}])?';
const domain = new RegExp(`${label}(?:\\.${label})+`, 'uy');
const address = /^(?:\d{1,3}\.){3}\d{1,3}$/;
const topLabel = /\.\p{L}[\p{L}\p{M}\p{N}-]+$/u;
const port = /:\d{1,5}(?!\d)/y;
const path = /[/?#][^\s<>"«»“”]*/uy;

const wordEnd = /[\p{L}\p{M}\p{N}_]$/u;
const schemeEnd = /(?:^|[^\p{L}\p{N}_])(https?|ftp)$/iu;
const labelEnd = /(?:^|[^\p{L}\p{M}\p{N}_.@/#$&=%+~:-])([\p{L}\p{N}](?:[\p{L}\p{M}\p{N}-]{0,62}))$/u;
const localPartEnd = /(?:^|[^\p{L}\p{N}_.%+@/-])([a-zA-Z0-9_](?:[a-zA-Z0-9_.%+-]{0,63}))$/u;
const trigger = /[/@#$.:]/g;

// How many characters before a trigger character, such as `@`, the patterns examine. This is enough for the longest
// name or address and the character before it.
const lookBack = 66;

/**
 * Returns the computed entities of a text, sorted and without overlaps. Takes linear time, because patterns are matched
 * only at the six trigger characters.
 */
export function computedEntities(text: string): Entity[] {
  const found: Entity[] = [];
  let end = 0;
  trigger.lastIndex = 0;
  for (let hit = trigger.exec(text); hit; hit = trigger.exec(text)) {
    const entity = entityAt(text, hit.index, end);
    if (!entity) continue;
    found.push(entity);
    end = entity.offset + entity.length;
    trigger.lastIndex = end;
  }
  return found;
}

/** Finds the entity that contains the trigger character at `at`. Ignores the text before `from`. */
function entityAt(text: string, at: number, from: number): Entity | null {
  switch (text[at]) {
    case '/':
      return isPlainBefore(text, at, '/<>') ? simple('bot_command', command, text, at) : null;
    case '#':
      return isPlainBefore(text, at, '#&') ? simple('hashtag', hashtag, text, at) : null;
    case '$':
      return isPlainBefore(text, at, '$') ? simple('cashtag', cashtag, text, at) : null;
    case '@':
      return (
        emailAt(text, at, from) ??
        (isPlainBefore(text, at, '@') ? simple('mention', mention, text, at) : null)
      );
    case ':':
      return text.startsWith('//', at + 1) ? schemeUrlAt(text, at, from) : null;
    default:
      return bareUrlAt(text, at, from);
  }
}

function isPlainBefore(text: string, at: number, others: string): boolean {
  if (at === 0) return true;
  return !others.includes(text[at - 1]!) && !wordEnd.test(text.slice(Math.max(0, at - 2), at));
}

function simple(type: Entity['type'], pattern: RegExp, text: string, at: number): Entity | null {
  const end = matchEnd(pattern, text, at);
  return end > at ? { type, offset: at, length: end - at } : null;
}

function matchEnd(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}

/**
 * Returns the index at which the captured group of `pattern` begins. The match must end directly before `at`. Returns
 * `at` if there is no match.
 */
function matchStart(pattern: RegExp, text: string, at: number, from: number): number {
  const before = text.slice(Math.max(from, at - lookBack), at);
  return at - (pattern.exec(before)?.[1]?.length ?? 0);
}

function emailAt(text: string, at: number, from: number): Entity | null {
  const start = matchStart(localPartEnd, text, at, from);
  const end = start < at ? matchEnd(domain, text, at + 1) : at;
  if (end <= at + 1 || text[end] === '@') return null;
  return topLabel.test(text.slice(at, end)) ? { type: 'email', offset: start, length: end - start } : null;
}

function schemeUrlAt(text: string, at: number, from: number): Entity | null {
  const start = matchStart(schemeEnd, text, at, from);
  const hostStart = at + 3;
  const hostEnd = start < at ? matchEnd(domain, text, hostStart) : hostStart;
  if (hostEnd === hostStart || text[hostEnd] === '@') return null;
  const host = text.slice(hostStart, hostEnd);
  return topLabel.test(host) || address.test(host) ? urlEntity(text, start, hostEnd) : null;
}

function bareUrlAt(text: string, at: number, from: number): Entity | null {
  // The cheap checks come first, because most full stops end a sentence. In a host name with several full stops, only
  // the first full stop passes these checks.
  const next = text.charCodeAt(at + 1);
  if (!(next > 47) || at === from) return null;
  const start = matchStart(labelEnd, text, at, from);
  const hostEnd = start < at ? matchEnd(domain, text, start) : start;
  if (hostEnd <= at || text[hostEnd] === '@' || wordEnd.test(text.slice(hostEnd, hostEnd + 1))) return null;
  if (!isTopLevelDomain(text.slice(text.lastIndexOf('.', hostEnd - 1) + 1, hostEnd))) return null;
  return urlEntity(text, start, hostEnd);
}

/** Adds the port and the path to a host. Leaves out punctuation that ends the sentence. */
function urlEntity(text: string, start: number, hostEnd: number): Entity {
  const portEnd = matchEnd(port, text, hostEnd);
  let end = matchEnd(path, text, portEnd);
  let openings = 0;
  for (let i = portEnd; i < end; i++) {
    if (text[i] === '(') openings++;
    else if (text[i] === ')') openings--;
  }
  for (; end > portEnd; end--) {
    const last = text[end - 1]!;
    // Keeps a closing bracket whose opening bracket is part of the URL.
    if (!isClosing(last) || (last === ')' && openings >= 0)) break;
    if (last === ')') openings++;
  }
  return { type: 'url', offset: start, length: end - start };
}

const isClosing = (char: string): boolean => '.,:;!?\'")]}'.includes(char);
