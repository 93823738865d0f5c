/** Sends stored files: as a whole, as a range, or only if modified (RFC 9110 §13, §14). */
import { Readable } from 'node:stream';
import { ApiError, errorEnvelope, fail } from '../errors.js';
import type { MediaFile } from '../files/file_id.js';
import type { Files } from '../files/files.js';
import { matchesTag } from '../rules/entity_tags.js';
import { parseRange } from '../rules/ranges.js';
import { callLimits as limits } from './limits.js';
import type { ApiRequest } from './request.js';

export type Downloads = ReturnType<typeof createDownloads>;

/**
 * Builds Content-Disposition with two file names: one in the encoding of RFC 8187, and a plain name for clients that do
 * not support this encoding.
 */
function disposition({ type, name }: MediaFile, shown: boolean): string {
  const kind = shown && type !== 'document' ? 'inline' : 'attachment';
  if (name === undefined) return kind;
  const plain = name.replace(/[^\x20-\x7e]|["\\%]/g, '_');
  const encoded = encodeURIComponent(name.replace(/\p{Surrogate}/gu, '_')).replace(
    /['()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `${kind}; filename="${plain}"; filename*=UTF-8''${encoded}`;
}

/** Anyone can upload files, so the headers keep browsers from running a file as a page of this origin. */
function headersOf(file: MediaFile, tag: string): Array<readonly [string, string]> {
  const type = file.mime ?? 'application/octet-stream';
  const shown = /^(image|audio|video)\//.test(type) && type !== 'image/svg+xml';
  return [
    ['Content-Type', type],
    ['Content-Disposition', disposition(file, shown)],
    ['X-Content-Type-Options', 'nosniff'],
    ['Content-Security-Policy', "default-src 'none'; sandbox"],
    ['Cache-Control', 'private, max-age=86400, immutable'],
    ['Accept-Ranges', 'bytes'],
    ['ETag', tag],
  ];
}

function unsatisfiable(request: ApiRequest, size: number): void {
  const error = new ApiError('range_not_satisfiable');
  const body = Buffer.from(errorEnvelope(error));
  request.replyStream({
    status: error.code,
    headers: [
      ['Content-Type', 'application/json'],
      ['Content-Range', `bytes */${size}`],
    ],
    length: body.length,
    body: Readable.from([body], { objectMode: false }),
  });
}

export function createDownloads(files: Files) {
  const running = new Map<number, number>();
  let all = 0;

  async function openCounted(file: MediaFile, start: number, end: number, caller: number): Promise<Readable> {
    const own = running.get(caller) ?? 0;
    if (all >= limits.downloads_max || own >= limits.downloads_per_caller_max)
      fail('too_many_requests', { retry_after: 1 });
    const leave = () => {
      all--;
      const left = (running.get(caller) ?? 1) - 1;
      if (left === 0) running.delete(caller);
      else running.set(caller, left);
    };
    all++;
    running.set(caller, own + 1);
    try {
      const stream = (await files.open(file, start, end)) ?? fail('not_found');
      stream.once('close', leave);
      return stream;
    } catch (error) {
      leave();
      throw error;
    }
  }

  /**
   * Replies with a file. `caller` is the id of a bot or person, whose downloads are counted together. Throws
   * `not_found`, `unavailable`, or `too_many_requests` for more than `limits.downloads_max` concurrent downloads, or
   * more than `limits.downloads_per_caller_max` of one caller.
   */
  async function send(request: ApiRequest, file: MediaFile, caller: number): Promise<void> {
    const { size } = file;
    if (file.key === undefined || size === undefined) return fail('not_found');
    const tag = `"${files.uniqueIdOf(file)}"`;
    const headers = headersOf(file, tag);
    if (matchesTag(request.ifNoneMatch, tag)) {
      request.replyStream({ status: 304, headers, length: size, body: null });
      return;
    }
    const wanted = request.ifRange === '' || request.ifRange === tag ? request.range : '';
    const range = parseRange(wanted, size);
    if (range === 'unsatisfiable') {
      unsatisfiable(request, size);
      return;
    }
    const [start, end] = range ?? [0, size - 1];
    if (range) headers.push(['Content-Range', `bytes ${start}-${end}/${size}`]);
    const body = await openCounted(file, start, end, caller);
    request.replyStream({ status: range ? 206 : 200, headers, length: end - start + 1, body });
  }

  return { send };
}
